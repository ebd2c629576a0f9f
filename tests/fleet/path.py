"""A TCP path that can be cut and healed: what goes over it is passed on as it is."""

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.servers.process import LOOPBACK, free_port

_PIECE = 65_536


class Path:
    """On a loop and a thread of its own, from a port of its own to another."""

    def __init__(self, to: int) -> None:
        self.port = free_port()
        self._to = to
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def cut(self) -> None:
        """Everything that is open breaks off, and nothing new gets through."""
        self._is_cut = True
        self._loop.call_soon_threadsafe(self._break_off)

    def heal(self) -> None:
        self._is_cut = False

    def _break_off(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._passed, LOOPBACK, self.port)
        )
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(LOOPBACK, self._to)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, back}
        try:
            await asyncio.gather(_pumped(reader, back), _pumped(there, writer))
        finally:
            self._open -= {writer, back}


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError):
        writer.close()
