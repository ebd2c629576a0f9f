"""An answer in pieces, sent as they come; who goes away is not written to any more."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import aclosing, suppress
from typing import Any

import orjson

from toolgate.server.body import Receive
from toolgate.server.headers import CLOSED
from toolgate.server.reply import EVENTS, Stream

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# A connection that says nothing for much longer is closed by some proxies; and so soon who waits is
# looked at again, and hears no more once its key opens nothing.
HEARTBEAT_S = 5.0
HEARTBEAT = b": still here\n\n"
# A proxy that keeps pieces back would make an answer of it that comes all at once.
_HEADERS = [
    (b"content-type", EVENTS),
    (b"x-accel-buffering", b"no"),
    *CLOSED,
]


def event(name: str, data: Any, id_: str = "") -> bytes:
    """One event, as `text/event-stream` writes it. JSON holds no line ends."""
    raw = data if isinstance(data, bytes) else orjson.dumps(data)
    head = f"id: {id_}\nevent: {name}\n" if id_ else f"event: {name}\n"
    return b"%bdata: %b\n\n" % (head.encode(), raw)


async def streamed(stream: Stream, receive: Receive, send: Send, *, is_head: bool = False) -> None:
    """Send it to its end, or until nobody is there; to who wants its head only, nothing of it."""
    left = asyncio.ensure_future(_left(receive))
    try:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with aclosing(stream.pieces) as pieces:
            while not (is_head or left.done()):
                coming = asyncio.ensure_future(anext(pieces, None))
                try:
                    await asyncio.wait({coming, left}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not coming.done():
                        coming.cancel()
                        with suppress(asyncio.CancelledError):
                            await coming
                if left.done() or (piece := coming.result()) is None:
                    break
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        left.cancel()
        stream.over()
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
