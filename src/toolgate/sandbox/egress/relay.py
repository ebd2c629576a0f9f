"""Bytes between two connections, with an end to how many, and to how long none come."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from toolgate import clock

_CHUNK = 65_536
IDLE_SECONDS = 300.0
MOST_BYTES = 1024**3


class Line(NamedTuple):
    """One connection, as it is read and written."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def hang_up(self) -> None:
        self.writer.transport.abort()


class Far(asyncio.StreamReaderProtocol):
    """The protocol of a connection that becomes a line."""

    def __init__(self) -> None:
        self._incoming = asyncio.StreamReader(limit=_CHUNK)
        self.line: Line
        super().__init__(self._incoming)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        # Another loop's transports are of other classes.
        both_ways = cast("asyncio.WriteTransport", transport)
        writer = asyncio.StreamWriter(both_ways, self, self._incoming, loop)
        self.line = Line(self._incoming, writer)


async def relay(near: Line, far: Line, *, body: int | None = None) -> None:
    """Both ways until both have ended; an `OSError` for what ends it before.

    `body`: so many bytes go out and no more, and the far end says when it is over.
    """
    try:
        async with asyncio.timeout(IDLE_SECONDS) as limit, asyncio.TaskGroup() as both:

            def moved() -> None:
                limit.reschedule(clock.monotonic_ns() / 1e9 + IDLE_SECONDS)

            inward = both.create_task(_all(far, near, moved))
            if body is None:
                both.create_task(_all(near, far, moved))
            else:
                outward = both.create_task(_body(near, far, body, moved))
                inward.add_done_callback(lambda _: outward.cancel())
    except ExceptionGroup as group:
        raise ConnectionAbortedError("the relay ended early") from group


async def _all(source: Line, sink: Line, moved: Callable[[], None]) -> None:
    left = MOST_BYTES
    while piece := await source.reader.read(_CHUNK):
        left -= len(piece)
        if left < 0:
            raise ConnectionAbortedError("too many bytes")
        sink.writer.write(piece)
        moved()
        await sink.writer.drain()
    if sink.writer.can_write_eof():
        sink.writer.write_eof()


async def _body(source: Line, sink: Line, size: int, moved: Callable[[], None]) -> None:
    if size > MOST_BYTES:
        raise ConnectionAbortedError("too many bytes")
    while size:
        piece = await source.reader.read(min(size, _CHUNK))
        if not piece:
            raise ConnectionAbortedError("the body is not whole")
        size -= len(piece)
        sink.writer.write(piece)
        moved()
        await sink.writer.drain()
    if await source.reader.read(1):
        raise ConnectionAbortedError("a second request")
