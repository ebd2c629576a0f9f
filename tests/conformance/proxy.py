"""Adds the key to what the suite sends: it has no option for a header. Host and Origin stay."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

_HEAD = b"\r\n\r\n"


@asynccontextmanager
async def adding(header: str, target: int) -> AsyncGenerator[int]:
    """A port on loopback that leads to `target`."""
    proxy = _Proxy(header.encode(), target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await proxy.close()
        await server.wait_closed()


class _Proxy:
    def __init__(self, header: bytes, target: int) -> None:
        self._header = header
        self._target = target
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection is one request: the server is told to close it after its answer."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            # Who is cut off at the end has nobody left to tell.
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                head = await reader.readuntil(_HEAD)
                near, far = await asyncio.open_connection("127.0.0.1", self._target)
                far.write(self._told(head))
                await _until_one_ends(_pass(reader, far), _pass(near, writer))
        finally:
            self._open.discard(task)
            writer.close()

    def _told(self, head: bytes) -> bytes:
        first, *lines = head.removesuffix(_HEAD).split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith(b"connection:")]
        return b"\r\n".join([first, *kept, self._header, b"Connection: close"]) + _HEAD

    async def close(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


async def _until_one_ends(*ways: Coroutine[Any, Any, None]) -> None:
    """A client that hangs up, and a server that has answered, end both ways."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
