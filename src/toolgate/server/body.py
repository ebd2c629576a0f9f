"""A request's body: bounded in size and depth before anything looks at it."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

import orjson

from toolgate.errors import InvalidRequest
from toolgate.spec.document import measure

MAX_BYTES = 1024 * 1024
_MAX_NODES = 100_000
_PERHAPS_DEEP = 64

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def read_object(receive: Receive) -> dict[str, Any]:
    """The JSON object that was sent, or `InvalidRequest`."""
    try:
        return parse_object(await _read(receive))
    except ValueError as error:
        raise InvalidRequest(f"The body {error}.") from None


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in these bytes, read as it was meant, or `ValueError` that says why not."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")
    opened, commas = raw.count(b"{") + raw.count(b"["), raw.count(b",")
    if opened > _PERHAPS_DEEP or commas >= _MAX_NODES:
        measure(cast("object", value), max_nodes=_MAX_NODES)
    # A second look for what the fast parser changes without a word.
    json.loads(raw, object_pairs_hook=_without_twins, parse_int=_exact)
    return cast("dict[str, Any]", value)


def _without_twins(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) != len({name for name, _ in pairs}):
        raise ValueError("has an object with the same name twice; keep one")


def _exact(digits: str) -> None:
    if len(digits) > 18 and not -(1 << 63) <= int(digits[:400]) < 1 << 64:
        raise ValueError("holds a whole number beyond 64 bits; send it as a text")


async def _read(receive: Receive) -> bytes:
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
            if size > MAX_BYTES:
                break
        body = b"".join(parts)
    if len(body) > MAX_BYTES:
        raise InvalidRequest(f"The body has more than {MAX_BYTES:,} bytes; send less.")
    return body
