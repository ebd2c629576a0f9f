"""The older revision over HTTP: a session from `initialize` on, with streams both ways."""

import asyncio
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import msgspec

from toolgate.call import Caller
from toolgate.errors import Overloaded, ToolgateError
from toolgate.server.auth import caller_of
from toolgate.server.body import Receive
from toolgate.server.headers import CLOSED
from toolgate.server.mcp import revision, rpc, sse
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.faults import told
from toolgate.server.mcp.holders import Holders
from toolgate.server.mcp.modern import Headers
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.sessions import Session, Sessions
from toolgate.server.mcp.talk import Talk
from toolgate.server.problems import wire_problem
from toolgate.tenancy.keys import Key

SESSION = b"mcp-session-id"
LAST = b"last-event-id"
_RETRY = b"retry: 1000\n"
# Of the numbers that stand in the ids of events.
_MOST_DIGITS = 12
_SSE = b"text/event-stream"
# What may have something to say, or to ask, before it is answered.
_MAY_ASK = frozenset({"tools/call", "resources/read", "prompts/get"})


class Legacy:
    """Sessions over HTTP."""

    def __init__(self, answering: Answering) -> None:
        self._talk = Talk(answering)
        self._sessions = Sessions()
        self._holders = Holders(lambda: answering.gate.tenancy.world)
        # Held here: what runs on after its client has gone must not be forgotten.
        self._tasks: set[asyncio.Task[Any]] = set()

    def close(self) -> None:
        """Every stream ends."""
        self._sessions.close()

    async def post(
        self,
        message: Message,
        headers: Headers,
        key: Key,
        caller: Caller,
        send: sse.Send,
    ) -> None:
        """A message of a session, or the one that begins it."""
        if message.method == "initialize" and message.is_request:
            await self._begin(message, key, caller, send)
            return
        session = await self._session(headers, key, send)
        if session is None:
            return
        if message.is_answer:
            session.answered(message)
            await _reply(send, 202, b"")
        elif not message.is_request:
            self._talk.noted(message, session)
            await _reply(send, 202, b"")
        elif message.method in _MAY_ASK and _SSE in headers.get(b"accept", b""):
            await self._streamed(message, session, send)
        else:
            body = await self._talk.answer(message, session, None)
            await _reply(send, 200, body)

    async def other(
        self, method: str, headers: Headers, key: Key, receive: Receive, send: sse.Send
    ) -> None:
        """GET listens, DELETE ends the session."""
        if method not in {"GET", "DELETE"}:
            status, body = wire_problem("method_not_allowed")
            await _reply(send, status, body, ((b"allow", b"POST, GET, DELETE"),))
            return
        session = await self._session(headers, key, send)
        if session is None:
            return
        if method == "DELETE":
            self._sessions.end(session)
            await _reply(send, 200, b"")
        elif _SSE not in headers.get(b"accept", b""):
            await _reply(send, 406, b"")
        else:
            await self._heard(
                session, headers.get(LAST, b"").strip().decode("latin-1"), receive, send
            )

    async def _begin(self, message: Message, key: Key, caller: Caller, send: sse.Send) -> None:
        try:
            peer = self._talk.begun(message, key, caller)
            session = self._sessions.open(peer)
        except Fault as error:
            await _reply(send, 400, rpc.fault(message.id, error))
            return
        except ToolgateError as error:
            await _reply(send, 503, rpc.fault(message.id, told(error)))
            return
        # What is done in one session belongs together, for policies that look back.
        whose = msgspec.structs.replace(caller, session=session.id)
        session.peer = msgspec.structs.replace(peer, session=session.id, caller=whose)
        body = rpc.result(message.id, self._talk.welcome(peer))
        await _reply(send, 200, body, ((SESSION, session.id.encode()),))

    async def _session(self, headers: Headers, key: Key, send: sse.Send) -> Session | None:
        id_ = headers.get(SESSION)
        if id_ is None:
            fault = Fault(rpc.INVALID_REQUEST, "Send Mcp-Session-Id, which `initialize` gives.")
            await _reply(send, 400, rpc.fault(None, fault))
            return None
        found = self._sessions.find(id_.strip().decode("latin-1"), key.id)
        if found is not None and found.peer.key is not key:
            # A later token of the same holder may say more, or less, than the first.
            whose = msgspec.structs.replace(caller_of(key), session=found.id)
            found.peer = msgspec.structs.replace(found.peer, key=key, caller=whose)
        if found is None:
            fault = Fault(rpc.INVALID_REQUEST, "There is no such session: begin anew.")
            await _reply(send, 404, rpc.fault(None, fault))
        return found

    async def _streamed(self, message: Message, session: Session, send: sse.Send) -> None:
        """A call that may have something to say, or to ask. Who goes away can come back to it."""
        stream = session.stream()
        work = asyncio.create_task(self._talk.answer(message, session, stream))
        self._tasks.add(work)
        work.add_done_callback(lambda done: self._over(session, stream, done))
        begun = asyncio.create_task(stream.changed())
        try:
            await asyncio.wait({work, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if work.done() and stream.is_closed and stream.count == 1:
            # No id of it was ever told: nobody could come back to it.
            session.forget(stream)
            await _reply(send, 200, work.result())
            return
        primed = session.peer.version == revision.LEGACY
        more = _RETRY + sse.priming(f"{stream.id}.0") if primed else b""
        with self._held(session):
            await sse.write(send, stream, named=True, more=more)

    def _held(self, session: Session) -> AbstractContextManager[None]:
        """A stream of this session is read: all of them end with what its key opens."""
        return self._holders.held(lambda: session.peer.key, lambda: self._sessions.end(session))

    def _over(self, session: Session, stream: sse.Stream, work: "asyncio.Task[bytes]") -> None:
        self._tasks.discard(work)
        if not work.cancelled():
            stream.put(work.result())
        session.over(stream)

    async def _heard(self, session: Session, last: str, receive: Receive, send: sse.Send) -> None:
        """The stream beside the answers, or the rest of one that was let go."""
        id_, after = _event(last)
        stream = session.find(id_) if last else session.beside
        if stream is None or after is None:
            await _reply(send, 404, b"")
            return
        if stream is session.beside and session.is_heard and not last:
            await _reply(send, 409, b"")
            return
        # Who comes back may be here before it was seen to go: the line before it ends.
        taken = stream.take()
        try:
            with ExitStack() as leaving:
                leaving.callback(stream.let_go, taken)
                leaving.enter_context(self._held(session))
                if stream is session.beside:
                    leaving.callback(await self._talk.listen(session))
                await _written(stream, after, taken, receive, send)
        except Overloaded as error:
            fault = rpc.fault(None, told(error))
            await _reply(send, 503, fault, ((b"retry-after", b"60"),))


def _event(last: str) -> tuple[str, int | None]:
    """A stream, and the number of the last message that was read of it; `None` where it is no id
    that was ever given out.
    """
    id_, _, number = last.partition(".")
    if not last:
        return "", 0
    if len(number) > _MOST_DIGITS or not (number.isascii() and number.isdigit()):
        return id_, None
    return id_, int(number)


async def _written(
    stream: sse.Stream, after: int, taken: asyncio.Event, receive: Receive, send: sse.Send
) -> None:
    """The rest of a stream, until it is over, its reader has gone, or another one has come."""
    writing = asyncio.create_task(sse.write(send, stream, after=after, named=True))
    gone = asyncio.create_task(sse.left(receive))
    other = asyncio.create_task(taken.wait())
    try:
        await asyncio.wait({writing, gone, other}, return_when=asyncio.FIRST_COMPLETED)
        if not writing.done() and not gone.done():
            writing.cancel()
            await asyncio.wait({writing})
            await send({"type": "http.response.body", "body": b""})
    finally:
        for one in (writing, gone, other):
            one.cancel()


async def _reply(
    send: sse.Send, status: int, body: bytes, more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    kind = b"application/problem+json" if status == 405 else b"application/json"
    headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(body)),
        *CLOSED,
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
