"""A loopback proxy between a client and a server, that can go silent or cut what it carries."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

LOOPBACK = "127.0.0.1"


class Proxy:
    """Carries bytes. `silent` holds answers back; `cut` ends connections within an answer."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.silent = False
        self.cut = False
        self.port = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOOPBACK, self._to)
        self._writers += [writer, back]
        for carry in (
            self._carry(reader, back, answers=False),
            self._carry(there, writer, answers=True),
        ):
            task = asyncio.ensure_future(carry)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if answers and self.silent:
                    continue
                if answers and self.cut:
                    writer.write(data[: len(data) // 2])
                    await writer.drain()
                    break
                writer.write(data)
                await writer.drain()
        writer.close()

    async def end(self) -> None:
        for writer in self._writers:
            writer.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxied(port: int) -> AsyncGenerator[Proxy]:
    """A proxy to a port of this machine."""
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.accept, LOOPBACK, 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
