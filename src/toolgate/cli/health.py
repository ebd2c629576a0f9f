"""What a process answers beside its doors: whether it is alive, and ready; on this machine, its
numbers. From a thread of its own, so that it also tells of a loop that does not come round.
"""

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Annotated, Any, NamedTuple, Self

import orjson
import typer

from toolgate.cli.listen import listen
from toolgate.cli.session import usage
from toolgate.runtime import Runtime
from toolgate.server.alarm import Alarm
from toolgate.server.health import alive, metrics, ready
from toolgate.server.host import host_check, is_loopback
from toolgate.server.reply import Reply
from toolgate.settings.settings import Server

_ALIVE = b"/healthz"
_ADVICE = "Name an address and a port that are free here: --health HOST:PORT"
_PATHS: Mapping[bytes, Callable[[Runtime], Coroutine[Any, Any, Reply]]] = {
    _ALIVE: alive,
    b"/readyz": ready,
}
# They tell of every tenant, and no key is asked for here.
_HERE = {b"/metrics": metrics}
_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*\r\n", re.IGNORECASE)
_SECONDS = 5.0
_MOST_BYTES = 8_192
# Connections at a time: no key is asked for here, and their files are those of the whole process.
_MOST = 64
# A loop that has not come round for so long will not: only a new process helps.
_STUCK_S = 60.0
# How long the loop gets to say what only it can; probes wait about as long.
_PATIENCE = 1.0


Beside = Annotated[
    str,
    typer.Option(
        "--health",
        metavar="HOST:PORT",
        help="Answer /healthz, /readyz and, on loopback, /metrics here, also while a tool blocks "
        "the loop; not at all where it is left out.",
    ),
]


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
    """Listens as long as the block lasts, at `address`. One question a connection."""

    address: str

    def __init__(self, gate: Runtime, where: Place, alarm: Alarm) -> None:
        self._gate = gate
        self._where = where
        self._alarm = alarm
        self._paths = {**_PATHS, **_HERE} if is_loopback(where.host) else _PATHS
        # A page elsewhere whose name points to this machine is not told them.
        self._is_meant = host_check(Server(host=where.host))
        # Who is connected, from the first on, and whether they have asked.
        self._connected: dict[asyncio.StreamWriter, bool] = {}

    def __enter__(self) -> Self:
        listening = listen(*self._where, advice=_ADVICE)
        host, port = listening.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._home = asyncio.get_running_loop()
        # The loop that answers, and what ends it.
        self._own, self._over = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(
            target=self._run, args=(listening,), name="toolgate-health", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._own.call_soon_threadsafe(self._over.set)
        self._thread.join(_PATIENCE)

    def _run(self, listening: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: self._own) as runner:
            runner.run(self._listen(listening))

    async def _listen(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(
            self._answer, sock=listening, limit=_MOST_BYTES, backlog=_MOST
        )
        await self._over.wait()
        server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._has_room():
            writer.transport.abort()
            return
        self._connected[writer] = False
        with contextlib.suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                self._connected[writer] = True
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
                writer.close()
                await writer.wait_closed()
        self._connected.pop(writer, None)
        # Who does not take the answer does not keep the connection.
        writer.transport.abort()

    def _has_room(self) -> bool:
        """Whether one more may come. Whoever has been there longest without a question goes: a
        probe asks at once.
        """
        if len(self._connected) < _MOST:
            return True
        silent = next((one for one, asked in self._connected.items() if not asked), None)
        if silent is None:
            return False
        del self._connected[silent]
        silent.transport.abort()
        return True

    async def _reply(self, method: bytes, path: bytes, host: bytes | None) -> Reply:
        name = path.partition(b"?")[0]
        asked = self._paths.get(name)
        if asked is None or method not in {b"GET", b"HEAD"}:
            return Reply(404, b"{}")
        if name in _HERE and not self._is_meant(host):
            return Reply(421, b"{}")
        if name == _ALIVE and self._alarm.blocked_s:
            return self._blocked(200 if self._alarm.blocked_s < _STUCK_S else 503)
        if name == _ALIVE:
            return await asked(self._gate)
        # The rest is the loop's own, and only it may look at it.
        said = asyncio.run_coroutine_threadsafe(asked(self._gate), self._home)
        try:
            async with asyncio.timeout(_PATIENCE if self._alarm.blocked_s else _SECONDS):
                return await asyncio.wrap_future(said)
        except TimeoutError:
            return self._blocked(503)

    def _blocked(self, status: int) -> Reply:
        """By whom is in the log: no key is asked for here."""
        told = {"status": "blocked", "blocked_s": round(self._alarm.blocked_s, 1)}
        return Reply(status, orjson.dumps(told))
