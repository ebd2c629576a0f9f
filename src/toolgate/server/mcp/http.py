"""`/mcp`: MCP over HTTP, both revisions from one place."""

import asyncio
from collections.abc import Awaitable, MutableMapping
from typing import Any

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import ToolgateError, ToolNotFound
from toolgate.runtime import Runtime
from toolgate.server.auth import Door, caller_of
from toolgate.server.body import Receive, SlowBodyError, object_of, read_object
from toolgate.server.headers import CLOSED
from toolgate.server.heads import Heads, heads_of
from toolgate.server.mcp import revision, rpc, sse
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.exchange import DEAF, Back, Peer, Told
from toolgate.server.mcp.faults import told
from toolgate.server.mcp.holders import Holders
from toolgate.server.mcp.legacy import Legacy
from toolgate.server.mcp.listen import Listeners
from toolgate.server.mcp.modern import VERSION, Headers, check_params, peer_of, unsupported
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.running import Running
from toolgate.server.mcp.spoken import heard
from toolgate.server.mcp.tasks import AFTER
from toolgate.server.problems import problem, wire_problem
from toolgate.server.rights import Right, may, not_for
from toolgate.server.whole import Head, body_of, send_whole
from toolgate.spec.tool import ToolSpec
from toolgate.stepped import rest
from toolgate.tenancy.keys import Key, not_valid

PATH = "/mcp"
Scope = MutableMapping[str, Any]
_HEAD = Head((b"content-type", b"application/json"), *CLOSED)
_MOST_CALLERS = 10_000
_HANDSHAKE = frozenset(one.encode() for one in revision.HANDSHAKE)


class Mcp:
    """An ASGI handler for one path."""

    def __init__(
        self,
        gate: Runtime,
        door: Door,
        *,
        expose_tools: bool = True,
        task_after: float = AFTER,
        drain: float = 30.0,
    ) -> None:
        self._door = door
        self._answering = Answering(gate, expose_tools=expose_tools, task_after=task_after)
        self._drain = drain
        self._ended_ns = 0
        self._running = Running()
        # Held here: what runs on after its client has gone must not be forgotten.
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listeners = Listeners(self._answering)
        self._legacy = Legacy(self._answering)
        self._holders = Holders(lambda: gate.tenancy.world)
        # By the key's id: to look a key up by all that it says takes longer than all else here.
        self._callers: dict[str, tuple[Key, Caller]] = {}

    def end_streams(self) -> None:
        """Nobody listens any longer; what runs, runs on, and is answered."""
        self._ended_ns = self._ended_ns or clock.monotonic_ns()
        self._legacy.hush()
        self._listeners.close()

    async def close(self) -> None:
        """The end."""
        self.end_streams()
        if running := self._tasks | self._legacy.running:
            await asyncio.wait(running, timeout=self._left())
        await self._legacy.close()
        await self._answering.close(self._left())

    def _left(self) -> float:
        """Of the time that calls have for their end, requests had their part."""
        return max(0.0, self._drain - (clock.monotonic_ns() - self._ended_ns) / 1e9)

    async def __call__(self, scope: Scope, receive: Receive, send: sse.Send) -> None:
        """Answer one request."""
        heads = heads_of(scope)
        headers, authorization = heads.found, heads.only(b"authorization")
        try:
            key = self._door.known(authorization)
            if key is None:
                key = await self._door.verified(authorization)
            kept = self._callers.get(key.id)
            caller = kept[1] if kept is not None and kept[0] is key else self._caller(key)
        except ToolgateError as error:
            await _problem(send, error, self._door)
            return
        if scope["method"] != "POST":
            await self._legacy.other(scope["method"], headers, key, receive, send)
            return
        try:
            body = body_of(scope)
            said = await read_object(receive) if body is None else object_of(body)
            message = heard(rpc.read(said), heads)
        except SlowBodyError:
            status, body = wire_problem("request_timeout")
            await reply(send, status, body)
            return
        except ToolgateError as error:
            # Which id it would have had nobody can tell.
            await reply(send, 400, _nobodys(Fault(rpc.PARSE_ERROR, error.message)))
            return
        except Fault as error:
            await reply(send, 400, _nobodys(error))
            return
        if _is_modern(message, headers):
            await self._modern(message, heads, key, caller, scope, receive, send)
        else:
            await self._legacy.post(message, headers, key, caller, send)

    def _caller(self, key: Key) -> Caller:
        if not may(key, Right.CALL):
            raise not_for(key)
        if len(self._callers) >= _MOST_CALLERS:
            self._callers.clear()
        found = caller_of(key)
        self._callers[key.id] = (key, found)
        return found

    async def _modern(
        self,
        message: Message,
        heads: Heads,
        key: Key,
        caller: Caller,
        scope: Scope,
        receive: Receive,
        send: sse.Send,
    ) -> None:
        headers = heads.found
        if not message.is_request:
            # Nothing is to be said here without being asked; what comes all the same is taken.
            version = headers.get(VERSION, b"").strip().decode("latin-1")
            fault = None if version == revision.MODERN else unsupported(version)
            await (reply(send, 202, b"") if fault is None else reply(send, 400, _nobodys(fault)))
            return
        spec = None
        try:
            peer = peer_of(message, headers, key, caller, heads.repeated)
            if message.method == "tools/call":
                spec = self._answering.gate.catalog.current.get(str(message.params.get("name")))
                meant = spec or self._meant(message)
                if meant is not None and self._answering.listing.shape(meant).is_mirrored:
                    await self._mirrored(message, meant, caller, heads)
        except Fault as error:
            await reply(send, rpc.STATUS.get(error.code, 200), rpc.fault(message.id, error))
            return
        meta = message.params["_meta"]
        if message.method == "subscriptions/listen":
            await self._listeners.listen(message, peer, receive, send)
        elif "progressToken" in meta or revision.LOG_LEVEL in meta:
            await self._streamed(message, peer, receive, send)
        else:
            await self._at_once(message, peer, spec, scope, receive, send)

    def _meant(self, message: Message) -> ToolSpec | None:
        """A tool that is called by another name than its own."""
        name, snapshot = str(message.params.get("name")), self._answering.gate.catalog.current
        own = self._answering.listing.meant(snapshot, name)
        return snapshot.meant(name if own is None else own)

    async def _mirrored(
        self, message: Message, spec: ToolSpec, caller: Caller, heads: Heads
    ) -> None:
        """Whether headers repeat the arguments. Who may not see the tool is not told that they
        should: its call is refused as that of a tool that is not there.
        """
        if not self._answering.methods.exposes(message.method):
            return
        try:
            given = rpc.mapping(message.params, "arguments")
            check_params(spec.input_schema.value(), given, heads.found, heads.repeated)
        except Fault:
            try:
                await self._answering.gate.gate.view(caller, spec.name)
            except ToolNotFound:
                return
            except ToolgateError as error:
                raise told(error) from None
            raise

    async def _at_once(
        self,
        message: Message,
        peer: Peer,
        spec: ToolSpec | None,
        scope: Scope,
        receive: Receive,
        send: sse.Send,
    ) -> None:
        """One answer, in one piece."""
        if spec is not None and self._answering.is_plain(message, peer, spec):
            exchange = self._answering.exchange(message, peer, DEAF)
            work = self._answering.plainly(exchange, spec, message.id)
            # Most have nothing to wait for; nobody has to listen for who goes away meanwhile.
            try:
                waiting = work.send(None)
            except StopIteration as done:
                found = done.value
            else:
                found = await self._while_there(rest(work, waiting), receive)
        elif self._answering.changes_nothing(message):
            found = await self._while_there(self._answer(message, peer, DEAF), receive)
        else:
            found = await self._answer(message, peer, DEAF)
        if found is not None:
            status, body = found
            await send_whole(scope, send, status, _HEAD, body)

    async def _while_there(
        self, work: Awaitable[tuple[int, bytes]], receive: Receive
    ) -> tuple[int, bytes] | None:
        """What comes of it; nothing where nobody is there any more to be answered."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a server runs each request in one
        self._running.enter(task, receive)
        try:
            return await work
        except asyncio.CancelledError:
            return None
        finally:
            self._running.leave(task)

    async def _answer(self, message: Message, peer: Peer, back: Back) -> tuple[int, bytes]:
        exchange = self._answering.exchange(message, peer, back)
        return await self._answering.answer(exchange, message.id)

    async def _streamed(
        self, message: Message, peer: Peer, receive: Receive, send: sse.Send
    ) -> None:
        """An answer that may have something to say on its way. Until it does it is one piece."""
        stream = sse.Stream("")
        work = asyncio.create_task(self._answer(message, peer, Told(stream)))
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)
        gone = asyncio.create_task(sse.left(receive))
        begun = asyncio.create_task(stream.changed())
        try:
            await asyncio.wait({work, gone, begun}, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and stream.is_empty:
                status, body = work.result()
                await reply(send, status, body)
                return
            if not gone.done():
                work.add_done_callback(lambda done: _ended(stream, done))
                with self._holders.held(lambda: peer.key, lambda: _over(stream, message)):
                    await sse.write_until(gone, send, stream)
        finally:
            begun.cancel()
            gone.cancel()
            if not work.done() and self._answering.changes_nothing(message):
                work.cancel()


def _is_modern(message: Message, headers: Headers) -> bool:
    """By its header; and by what it says itself, so that a wrong header is found out."""
    version = headers.get(VERSION)
    if version is not None:
        return version.strip() not in _HANDSHAKE
    meta = message.params.get("_meta")
    return isinstance(meta, dict) and revision.VERSION in meta


def _over(stream: sse.Stream, message: Message) -> None:
    """Whoever reads it would not be let in any more."""
    stream.put(rpc.fault(message.id, told(not_valid())))
    stream.close()


def _ended(stream: sse.Stream, work: "asyncio.Task[tuple[int, bytes]]") -> None:
    if not work.cancelled() and not stream.is_closed:
        stream.put(work.result()[1])
    stream.close()


async def reply(
    send: sse.Send, status: int, body: bytes, more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """One answer."""
    headers = [*_HEAD.headers, (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _problem(send: sse.Send, error: ToolgateError, door: Door) -> None:
    # As a message too: a client shows what it can read.
    status, _body = problem(error)
    body = _nobodys(Fault(rpc.REFUSED, error.message, {"code": error.code}))
    challenge = door.challenge_of(error)
    more = ((b"www-authenticate", challenge),) if challenge else ()
    await reply(send, status, body, more)


def _nobodys(error: Fault) -> bytes:
    """A fault whose request has no id that could be told."""
    return rpc.fault(None, error)
