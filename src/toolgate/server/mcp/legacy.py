"""The older revision over HTTP: a session from `initialize` on, with streams both ways."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

import msgspec

from toolgate.caller import Caller
from toolgate.errors import Overloaded, StoreError, ToolgateError
from toolgate.server.auth import caller_of
from toolgate.server.body import Receive
from toolgate.server.headers import CLOSED
from toolgate.server.mcp import revision, rpc, sse
from toolgate.server.mcp.afar import Afar, written
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.faults import told
from toolgate.server.mcp.holders import Holders
from toolgate.server.mcp.modern import Headers
from toolgate.server.mcp.passport import Passports
from toolgate.server.mcp.post import ALL
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.sessions import BESIDE, Session, Sessions
from toolgate.server.mcp.standing import SAID, Standing
from toolgate.server.mcp.talk import Talk
from toolgate.server.problems import wire_problem
from toolgate.tenancy.keys import Key

SESSION = b"mcp-session-id"
LAST = b"last-event-id"
_RETRY = b"retry: 1000\n"
# How long after its stream began, or was let go, a client may come back to it at another node.
_COMES_BACK = 600.0
# Of the numbers that stand in the ids of events.
_MOST_DIGITS = 12
_ANSWER, _CANCEL = "answer", "cancel"
_MOST_LETTERS = 100
_SSE = b"text/event-stream"
# What may have something to say, or to ask, before it is answered.
_MAY_ASK = frozenset({"tools/call", "resources/read", "prompts/get"})


class Legacy:
    """Sessions over HTTP."""

    def __init__(self, answering: Answering) -> None:
        self._talk = Talk(answering)
        self._post = answering.post
        self._passports = Passports(answering.gate.secret)
        self._sessions = Sessions(self._passports, self._post.node)
        self._afar = Afar(self._sessions, self._post)
        self._post.on(_ANSWER, self._answer)
        self._post.on(_CANCEL, self._cancel)
        self._post.on(SAID, self._said)
        self._holders = Holders(lambda: answering.gate.tenancy.world)
        # Held here: what runs on after its client has gone must not be forgotten.
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> frozenset[asyncio.Task[Any]]:
        """What is still to be answered on a stream, whether or not anybody reads it."""
        return frozenset(self._tasks)

    def hush(self) -> None:
        """The house is about to end: who only listens need not wait for it. A stream with an answer
        on its way stays: without it a client would call again, and what it called happen twice.
        """
        self._sessions.hush()

    async def close(self) -> None:
        """Every stream ends."""
        await self._afar.close()
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
            await self._answered(message, session)
            await _reply(send, 202, b"")
        elif not message.is_request:
            await self._cancelled(session, self._talk.noted(message, session))
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
            await self._talk.standings.say(session, _ended)
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
        body = rpc.result(message.id, self._talk.welcome(peer))
        await _reply(send, 200, body, ((SESSION, session.id.encode()),))

    async def _session(self, headers: Headers, key: Key, send: sse.Send) -> Session | None:
        id_ = headers.get(SESSION)
        if id_ is None:
            fault = Fault(
                rpc.INVALID_REQUEST,
                "Send Mcp-Session-Id, which `initialize` gives; or speak 2026-07-28, without one.",
            )
            await _reply(send, 400, rpc.fault(None, fault))
            return None
        try:
            found = await self._found(id_.strip().decode("latin-1"), key)
        except Overloaded as error:
            await _reply(send, 503, rpc.fault(None, told(error)), ((b"retry-after", b"60"),))
            return None
        if found is not None and found.peer.key is not key:
            # A later token of the same holder may say more, or less, than the first.
            whose = msgspec.structs.replace(caller_of(key), session=found.name)
            found.peer = msgspec.structs.replace(found.peer, key=key, caller=whose)
        if found is None:
            fault = Fault(rpc.INVALID_REQUEST, "There is no such session: begin anew.")
            await _reply(send, 404, rpc.fault(None, fault))
        return found

    async def _found(self, id_: str, key: Key) -> Session | None:
        """A session that goes on, wherever it began."""
        found, is_here = self._sessions.find(id_, key.id), True
        if found is None:
            found, is_here = self._sessions.restored(id_, key, caller_of(key)), False
        if found is None:
            return None
        try:
            goes_on = await self._talk.standings.look(found, anew=not is_here)
        except StoreError:
            # How it stands elsewhere is not known; what it began with holds.
            return found
        if not goes_on:
            self._sessions.end(found)
            return None
        return found

    async def _answered(self, message: Message, session: Session) -> None:
        """An answer of the client's: for this node, or for the one that asked."""
        id_, failed = str(message.id), message.error is not None
        if session.answered(id_, message.result, failed=failed):
            return
        node = self._passports.asked_by(id_, session.name)
        if node:
            letter = {"session": session.name, "id": id_, "result": message.result}
            with suppress(StoreError):
                await self._post.send(node, _ANSWER, letter | {"failed": failed})

    async def _answer(self, letter: Mapping[str, Any]) -> None:
        session = self._sessions.named(letter["session"])
        if session is not None:
            session.answered(letter["id"], letter["result"], failed=bool(letter["failed"]))

    async def _cancelled(self, session: Session, id_: str | int | None) -> None:
        """A request that is to end runs at another node, or nowhere any more."""
        if id_ is None or session.letters >= _MOST_LETTERS:
            return
        session.letters += 1
        with suppress(StoreError):
            await self._post.send(ALL, _CANCEL, {"session": session.name, "id": id_})

    async def _cancel(self, letter: Mapping[str, Any]) -> None:
        session = self._sessions.named(letter["session"])
        if session is not None:
            self._talk.cancel(session, letter["id"])

    async def _said(self, letter: Mapping[str, Any]) -> None:
        session = self._sessions.named(letter["name"])
        if session is not None and not await self._talk.heard(session):
            self._sessions.end(session)

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
        # Who goes away may come back to any node, and be answered by what it was asked at another.
        expecting = ExitStack()
        expecting.enter_context(self._post.expecting())
        work.add_done_callback(lambda _: expecting.close())
        self._post.linger(_COMES_BACK)
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
        missed = stream is None and id_.endswith(BESIDE) and after is not None
        if missed:
            # It listened at another node; what it heard there is not known here.
            stream, after = session.beside, session.beside.count
        elif stream is None and await self._elsewhere(session, id_, after, receive, send):
            return
        if stream is None or after is None:
            fault = Fault(rpc.INVALID_REQUEST, "There is no such stream any more: begin anew.")
            await _reply(send, 404, rpc.fault(None, fault))
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
                leaving.enter_context(self._post.expecting())
                if stream is session.beside:
                    leaving.callback(await self._talk.listen(session, missed=missed))
                await _written(stream, after, taken, receive, send)
        except Overloaded as error:
            fault = rpc.fault(None, told(error))
            await _reply(send, 503, fault, ((b"retry-after", b"60"),))

    async def _elsewhere(
        self, session: Session, id_: str, after: int | None, receive: Receive, send: sse.Send
    ) -> bool:
        """The rest of a stream that is at another node; `False` where it is gone."""
        if after is None or id_.startswith(f"{self._post.node}-"):
            return False
        messages = self._afar.read(session, id_, after)
        writing = asyncio.create_task(written(send, id_, messages))
        gone = asyncio.create_task(sse.left(receive))
        try:
            with self._holders.held(lambda: session.peer.key, lambda: _stop(writing)):
                await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
            return writing.result() if writing.done() and not writing.cancelled() else True
        except (StoreError, OSError):
            return False
        finally:
            writing.cancel()
            gone.cancel()


def _stop(writing: "asyncio.Task[bool]") -> None:
    """Whoever reads it would not be let in any more."""
    writing.cancel()


def _ended(before: Standing) -> Standing:
    return msgspec.structs.replace(before, is_over=True, subscribed=frozenset())


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
