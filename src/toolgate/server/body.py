"""A request's body: bounded in size and depth before anything looks at it."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.spec.json_object import parse_object
from toolgate.stepped import rest

MAX_BYTES = 1024 * 1024
SECONDS = 30.0

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class SlowBodyError(Exception):
    """The body did not arrive in time."""


async def read_object(
    receive: Receive, *, or_nothing: bool = False, most: int = 0
) -> dict[str, Any]:
    """The JSON object that was sent, or `InvalidRequest`; `SlowBodyError` if it takes too long.

    `or_nothing`: an empty body is an object without fields. `most`: so many bytes are read; 0: as
    many as a request usually may have.
    """
    most = most or MAX_BYTES
    work = _read(receive, most)
    # Nearly every body is there by now: a timer would cost more than to read it.
    try:
        waiting = work.send(None)
    except StopIteration as done:
        body: bytes = done.value
    else:
        try:
            async with asyncio.timeout(SECONDS):
                body = await rest(work, waiting)
        except TimeoutError:
            raise SlowBodyError from None
    return {} if or_nothing and not body else object_of(body, most)


def object_of(body: bytes, most: int = 0) -> dict[str, Any]:
    """The JSON object in a body, or `InvalidRequest`."""
    most = most or MAX_BYTES
    if len(body) > most:
        raise InvalidRequest(f"The body has more than {most:,} bytes; send less.")
    try:
        return parse_object(body)
    except ValueError as error:
        raise InvalidRequest(f"The body {error}.") from None


async def _read(receive: Receive, most: int) -> bytes:
    message = await receive()
    body = message.get("body", b"")
    if message.get("more_body"):
        parts = [body]
        size = len(body)
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise InvalidRequest("The connection closed before the whole body was there.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                break
        body = b"".join(parts)
    return body
