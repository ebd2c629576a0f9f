"""A wire to a server that breaks at a chosen moment: before what was said, or before the answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.servers.process import LOOPBACK


class Wire:
    """Carries bytes. Once armed, it breaks at the n-th thing that the client says."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._left = 0
        self._heard = True
        self.broke = False
        self.port = 0

    def arm(self, at: int, *, heard: bool) -> None:
        """`heard`: the server still gets it, and only the answer is lost."""
        self._left, self._heard, self.broke = at, heard, False

    def disarm(self) -> None:
        self._left = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOOPBACK, self._to)
        answers = asyncio.ensure_future(self._carry(there, writer))
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if self._left:
                    self._left -= 1
                    if self._left == 0:
                        self.broke = True
                        answers.cancel()
                        if self._heard:
                            back.write(data)
                            await back.drain()
                        break
                back.write(data)
                await back.drain()
        writer.transport.abort()
        back.close()
        await asyncio.gather(answers, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def wired(port: int) -> AsyncGenerator[Wire]:
    """A wire to a port of this machine."""
    wire = Wire(port)
    server = await asyncio.start_server(wire.accept, LOOPBACK, 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
