"""A request's body: bounded in size and depth before anything looks at it."""

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
    body = await _read(receive)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be a JSON object.")
    if body.count(b"{") + body.count(b"[") > _PERHAPS_DEEP:
        try:
            measure(cast("object", value), max_nodes=_MAX_NODES)
        except ValueError as error:
            raise InvalidRequest(f"The body {error}.") from None
    return cast("dict[str, Any]", value)


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
