"""MCP over standard input and output: a message a line, both revisions, one client."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from toolgate.caller import Caller
from toolgate.errors import Overloaded
from toolgate.server.mcp import revision, rpc
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.exchange import Peer, Told
from toolgate.server.mcp.listen import Listeners
from toolgate.server.mcp.modern import peer_of
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.sessions import Session
from toolgate.server.mcp.sse import Stream
from toolgate.server.mcp.talk import Talk
from toolgate.spec.json_object import parse_object
from toolgate.tenancy.keys import Key

MOST = 4 * 1024 * 1024
Write = Callable[[bytes], None]


class _Out(Stream):
    """What is put goes out at once."""

    def __init__(self, write: Write) -> None:
        super().__init__("")
        self._write = write

    def put(self, message: bytes) -> None:
        """As a line."""
        self._write(message)


class Lines:
    """One client at the other end of two pipes."""

    def __init__(self, answering: Answering, key: Key, caller: Caller, write: Write) -> None:
        self._answering = answering
        self._key = key
        self._caller = caller
        self._out = _Out(write)
        # Of the older revision: what `initialize` agreed on.
        self._session: Session | None = None
        # Ends what it hears beside its answers.
        self._leave: Callable[[], None] = lambda: None
        self._running: dict[str | int, asyncio.Task[Any]] = {}
        self._talk = Talk(answering)
        self._listeners = Listeners(answering)

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Until the client closes its end; what runs then is finished."""
        while True:
            try:
                line = await reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as rest:
                line = rest.partial
                if not line.strip():
                    break
            except asyncio.LimitOverrunError:
                await _skip(reader)
                self._fault(None, Fault(rpc.PARSE_ERROR, f"A line has at most {MOST:,} bytes."))
                continue
            if line.strip():
                self._take(line)
        for stop in self._running.values():
            if stop.get_name() == _LISTENS:
                stop.cancel()
        if self._running:
            await asyncio.wait(self._running.values())
        self._leave()

    def _take(self, line: bytes) -> None:
        try:
            message = rpc.read(parse_object(line))
        except ValueError as error:
            self._fault(None, Fault(rpc.PARSE_ERROR, f"The line {error}."))
            return
        except Fault as error:
            self._fault(None, error)
            return
        if message.is_answer:
            if self._session is not None:
                failed = message.error is not None
                self._session.answered(str(message.id), message.result, failed=failed)
        elif not message.is_request:
            self._noted(message)
        elif message.id in self._running:
            self._fault(message.id, Fault(rpc.INVALID_REQUEST, "This id is in use already."))
        else:
            self._begin(message)

    def _begin(self, message: Message) -> None:
        id_ = message.id
        assert id_ is not None  # noqa: S101  a request has one
        name = _LISTENS if message.method == "subscriptions/listen" else _RUNS
        if not self._answering.changes_nothing(message):
            name = _CHANGES
        task = asyncio.create_task(self._answer(message), name=name)
        self._running[id_] = task
        task.add_done_callback(lambda _: self._running.pop(id_, None))

    async def _answer(self, message: Message) -> None:
        try:
            if _is_modern(message):
                peer = peer_of(message, None, self._key, self._caller)
                await self._modern(message, peer)
            elif message.method == "initialize":
                peer = self._talk.begun(message, self._key, self._caller)
                self._out.put(rpc.result(message.id, self._talk.welcome(peer)))
                await self._begun(peer)
            elif self._session is None:
                fault = Fault(rpc.INVALID_REQUEST, "Begin with `initialize`, or send '_meta'.")
                self._fault(message.id, fault)
            else:
                self._out.put(await self._talk.answer(message, self._session, self._out))
        except Fault as error:
            self._fault(message.id, error)

    async def _begun(self, peer: Peer) -> None:
        """A session, in place of the one before it, if there was one."""
        session = self._session = Session("", peer)
        session.beside = self._out
        self._leave()
        self._leave = lambda: None
        # With too many of them listening already it is told nothing, and answered all the same.
        with contextlib.suppress(Overloaded):
            leave = await self._talk.listen(session)
            if self._session is session:
                self._leave = leave
            else:
                leave()

    async def _modern(self, message: Message, peer: Peer) -> None:
        if message.method == "subscriptions/listen":
            async with self._listeners.heard(message, peer, self._out) as is_heard:
                if is_heard:
                    await asyncio.Event().wait()
            return
        exchange = self._answering.exchange(message, peer, Told(self._out))
        _status, body = await self._answering.answer(exchange, message.id)
        self._out.put(body)

    def _noted(self, message: Message) -> None:
        if message.method != "notifications/cancelled":
            return
        id_ = message.params.get("requestId")
        task = self._running.get(id_) if isinstance(id_, (str, int)) else None
        # A side effect runs to its end: nobody could say how far it got.
        if task is not None and task.get_name() != _CHANGES:
            task.cancel()

    def _fault(self, id_: rpc.Id, error: Fault) -> None:
        self._out.put(rpc.fault(id_, error))


_LISTENS = "toolgate-mcp-listens"
_RUNS = "toolgate-mcp-runs"
_CHANGES = "toolgate-mcp-changes-something"


async def _skip(reader: asyncio.StreamReader) -> None:
    """The rest of a line that is too long."""
    while True:
        try:
            await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as more:
            await reader.readexactly(more.consumed)
        except asyncio.IncompleteReadError:
            return
        else:
            return


def _is_modern(message: Message) -> bool:
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and revision.VERSION in meta
