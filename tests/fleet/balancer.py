"""A plain round-robin balancer over HTTP/1.1: each request goes to the next node, none sticks.

It keeps nothing: one request a connection, its answer passed on byte by byte until the node closes.
A node that takes no connection is passed over, since nothing was sent to it; one that breaks off
later breaks off for the client too, as with any balancer.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.servers.process import LOOPBACK, free_port

_PIECE = 65_536
_HEAD = 128 * 1024


class Balancer:
    """On a loop and a thread of its own; `nodes` can be replaced while it runs."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.nodes = tuple(nodes)
        self.port = free_port()
        self.log: list[tuple[int, str]] = []
        self._number = 0
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

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
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        meetings: set[asyncio.Task[None]] = set()

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            meetings.add(task)
            try:
                await self._one(reader, writer)
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                meetings.discard(task)
                writer.close()

        server = await asyncio.start_server(meet, LOOPBACK, self.port, limit=_HEAD)
        self._ready.set()
        await self._over.wait()
        server.close()
        for one in tuple(meetings):
            one.cancel()
        await asyncio.gather(*meetings, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith(b"connection:")]
        node = await self._connected(first.decode("latin-1"))
        if node is None:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        theirs, to_node = node
        try:
            to_node.write(b"\r\n".join([first, *kept, b"Connection: close", b"", b""]))
            # What the client sends, until it goes; then the node is told that it went.
            sending = asyncio.create_task(_passed(reader, to_node))
            answering = asyncio.create_task(_passed(theirs, writer))
            try:
                await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in (sending, answering):
                    one.cancel()
                await asyncio.gather(sending, answering, return_exceptions=True)
        finally:
            to_node.close()

    async def _connected(
        self, line: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        nodes = self.nodes
        for _ in nodes:
            port = nodes[self._number % len(nodes)]
            self._number += 1
            with suppress(OSError):
                found = await asyncio.open_connection(LOOPBACK, port)
                self.log.append((port, line))
                return found
        return None


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
