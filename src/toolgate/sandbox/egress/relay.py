"""Bytes between two connections, with an end to how many and to how long nothing comes."""

import asyncio
from collections.abc import Callable

from toolgate import clock

_CHUNK = 65_536
IDLE_SECONDS = 300.0
MOST_BYTES = 1024**3


class Line:
    """One connection, as it is read and written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def hang_up(self) -> None:
        self.writer.transport.abort()


class Far(asyncio.StreamReaderProtocol):
    """The protocol of a connection that becomes a line."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader(limit=_CHUNK)
        self.line: Line
        super().__init__(self._reader)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.WriteTransport)
        loop = asyncio.get_running_loop()
        writer = asyncio.StreamWriter(transport, self, self._reader, loop)
        self.line = Line(self._reader, writer)


async def relay(near: Line, far: Line, *, body: int | None = None) -> None:
    """Both ways until both have ended. `body`: as many bytes go out, and no more."""
    async with asyncio.timeout(IDLE_SECONDS) as limit:

        def moved() -> None:
            limit.reschedule(clock.monotonic_ns() / 1e9 + IDLE_SECONDS)

        outward = asyncio.create_task(_pump(near, far, MOST_BYTES, moved, body=body))
        inward = asyncio.create_task(_pump(far, near, MOST_BYTES, moved))
        try:
            if body is None:
                await asyncio.gather(outward, inward)
            else:
                # A far server that has answered is done, whatever it has read.
                await asyncio.wait((outward, inward), return_when=asyncio.FIRST_EXCEPTION)
        finally:
            outward.cancel()
            inward.cancel()
            await asyncio.gather(outward, inward, return_exceptions=True)
