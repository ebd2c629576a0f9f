"""What a worker answers over HTTP: whether it is alive, and ready; on this machine, its numbers."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Self

from toolgate.cli.listen import listen
from toolgate.cli.session import usage
from toolgate.runtime import Runtime
from toolgate.server.health import alive, metrics, ready
from toolgate.server.host import host_check, is_loopback
from toolgate.server.reply import Reply
from toolgate.settings.settings import Server

_PATHS: Mapping[bytes, Callable[[Runtime], Awaitable[Reply]]] = {
    b"/healthz": alive,
    b"/readyz": ready,
}
# They tell of every tenant, and no key is asked for here.
_HERE = {b"/metrics": metrics}
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*\r\n", re.IGNORECASE)
_SECONDS = 5.0
_MOST_BYTES = 8_192


class Place(NamedTuple):
    """Where it listens."""

    host: str
    port: int


def place(given: str, *, json: bool) -> Place:
    """`HOST:PORT`, or wrong usage."""
    host, _, port = given.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise usage("--health is HOST:PORT, such as 0.0.0.0:8701.", json=json)
    return Place(host.strip("[]"), int(port))


class Health:
    """Listens as long as the block lasts. One question a connection."""

    def __init__(self, gate: Runtime, where: Place) -> None:
        self._gate = gate
        self._where = where
        self._paths = {**_PATHS, **_HERE} if is_loopback(where.host) else _PATHS
        # A page elsewhere whose name points to this machine is not told them.
        self._is_meant = host_check(Server(host=where.host))
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        listening = listen(*self._where)
        self._server = await asyncio.start_server(self._answer, sock=listening, limit=_MOST_BYTES)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = (*head.split(b" ", 2), b"", b"")
                named = _HOST.search(head)
                reply = await self._reply(method, path, named and named[1])
                status = HTTPStatus(reply.status)
                writer.write(
                    f"HTTP/1.1 {status.value} {status.phrase}\r\n"
                    f"Content-Type: {reply.kind.decode()}\r\nConnection: close\r\n"
                    f"Content-Length: {len(reply.body)}\r\n\r\n".encode()
                    + (b"" if method == b"HEAD" else reply.body)
                )
                await writer.drain()
        writer.close()

    async def _reply(self, method: bytes, path: bytes, host: bytes | None) -> Reply:
        name = path.partition(b"?")[0]
        asked = self._paths.get(name)
        if asked is None or method not in {b"GET", b"HEAD"}:
            return Reply(404, b"{}")
        if name in _HERE and not self._is_meant(host):
            return Reply(421, b"{}")
        return await asked(self._gate)
