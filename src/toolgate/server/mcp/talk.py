"""A session of the older revision, whatever carries it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from toolgate.caller import Caller
from toolgate.server.mcp import revision, rpc
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.exchange import DEAF, Exchange, Peer
from toolgate.server.mcp.hearing import MOST, PROMPTS, RESOURCES, UPDATED, Hearing, tells
from toolgate.server.mcp.line import LEVELS, NEEDS
from toolgate.server.mcp.methods import Method
from toolgate.server.mcp.resources import Resources
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.sessions import Session
from toolgate.server.mcp.sse import Stream
from toolgate.server.mcp.standing import Standing, Standings
from toolgate.tenancy.keys import Key

_SUBSCRIBE = "resources/subscribe"
# Of all URIs that a session has subscribed to together.
_MOST_LETTERS = 64 * 1024


class Talk:
    """What a session is begun with, and what it has beside the methods that all have."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self.standings = Standings(answering.post)

    def begun(self, message: Message, key: Key, caller: Caller) -> Peer:
        """Who sends an `initialize`."""
        version = revision.agreed(message.params.get("protocolVersion"))
        return Peer(key, caller, version, rpc.mapping(message.params, "capabilities"))

    def welcome(self, peer: Peer) -> dict[str, Any]:
        """The result of `initialize`."""
        return {
            "protocolVersion": peer.version,
            "capabilities": self._answering.methods.capabilities,
            "serverInfo": dict(revision.INFO),
            "instructions": revision.INSTRUCTIONS,
        }

    async def answer(self, message: Message, session: Session, stream: Stream | None) -> bytes:
        """The answer to a request; what is told and asked on the way goes by its stream. Without
        one nobody would hear a question, and none is asked.
        """
        more = _of(session, self._answering.methods.resources, self._said(session))
        task = asyncio.current_task()
        assert task is not None and message.id is not None  # noqa: S101, PT018  both are there
        if message.id in session.running:
            # Of two answers under one id a client would take the first for both.
            return rpc.fault(message.id, Fault(rpc.INVALID_REQUEST, "This id is in use already."))
        session.running[message.id] = task, self._answering.changes_nothing(message)
        try:
            exchange = Exchange(
                self._answering.gate,
                session.peer if stream is not None else _silent(session.peer),
                message.method,
                message.params,
                rpc.meta_of(message.params),
                DEAF if stream is None else Way(session, stream),
                session.log_level,
            )
            _status, body = await self._answering.answer(exchange, message.id, more)
        except Fault as error:
            return rpc.fault(message.id, error)
        except asyncio.CancelledError:
            if task.uncancel():
                raise
            return rpc.fault(message.id, Fault(rpc.CANCELLED, "This request was cancelled."))
        finally:
            del session.running[message.id]
        return body

    def noted(self, message: Message, session: Session) -> str | int | None:
        """A notification. A cancellation ends what changes nothing; the rest runs to its end. What
        comes back is the request that is to end and is not here.
        """
        id_ = message.params.get("requestId")
        if message.method != "notifications/cancelled" or not isinstance(id_, (str, int)):
            return None
        return None if self.cancel(session, id_) else id_

    def cancel(self, session: Session, id_: str | int) -> bool:
        """Whether there is such a request here."""
        found = session.running.get(id_)
        if found is not None and found[1]:
            found[0].cancel()
        return found is not None

    def _said(self, session: Session) -> "Say":
        """What a session says is for every node; one on a pipe has no other."""

        async def say(change: Callable[[Standing], Standing]) -> None:
            if session.id:
                await self.standings.say(session, change)

        return say

    async def listen(self, session: Session, *, missed: bool = False) -> Callable[[], None]:
        """Tell the session of changes, beside its answers, until the function that comes back is
        called. `missed`: some may have come before.
        """

        peer, others = session.peer, self._answering.others

        def tell(method: str, params: dict[str, Any]) -> None:
            session.beside.put(rpc.notification(f"notifications/{method}", params))

        def changed() -> None:
            tell("tools/list_changed", {})
            tell(RESOURCES, {})
            if others.are_there:
                tell(PROMPTS, {})
            # Others tell of theirs themselves.
            for uri in sorted(session.subscribed - hearing.watched):
                tell(UPDATED, {"uri": uri})

        with contextlib.ExitStack() as leaving:
            hearing = Hearing(others, peer.caller, tell)
            leaving.callback(hearing.close)
            end = await self._answering.changes.listen(peer, changed, session.beside.close)
            leaving.callback(end)
            session.hearing = hearing
            leaving.callback(_deaf, session, hearing)
            await self._again(session, hearing)
            if missed:
                changed()
            return leaving.pop_all().close

    async def heard(self, session: Session) -> bool:
        """It has said something at another node, and may listen here; whether it goes on."""
        goes_on = await self.standings.look(session, anew=True)
        if goes_on and session.hearing is not None:
            await self._again(session, session.hearing)
        return goes_on

    async def _again(self, session: Session, hearing: Hearing) -> None:
        """What it subscribed to before it listened, or elsewhere; and what it did no longer."""
        for uri in hearing.watched - session.subscribed:
            hearing.drop(uri)
        for uri in sorted(session.subscribed - hearing.watched):
            params = {"uri": uri}
            exchange = Exchange(self._answering.gate, session.peer, _SUBSCRIBE, params, {})
            with contextlib.suppress(Fault):
                _uri, share = await self._answering.methods.resources.check(exchange)
                if share is not None:
                    await hearing.watch(share, uri)


class Way:
    """Both ways, on the stream of one request."""

    def __init__(self, session: Session, stream: Stream) -> None:
        self._session = session
        self._stream = stream

    def notify(self, method: str, params: rpc.Params) -> None:
        """Before its answer."""
        self._stream.put(rpc.notification(method, params))

    async def ask(self, method: str, params: rpc.Params) -> Any:
        """And wait for the client."""
        return await self._session.ask(self._stream, method, params)


def _deaf(session: Session, hearing: Hearing) -> None:
    """It hears by this no longer; who came for it meanwhile hears by another."""
    if session.hearing is hearing:
        session.hearing = None


def _silent(peer: Peer) -> Peer:
    """Who cannot be asked anything, whatever it takes elsewhere."""
    takes = {name: one for name, one in peer.capabilities.items() if name not in NEEDS.values()}
    return msgspec.structs.replace(peer, capabilities=takes)


Say = Callable[[Callable[[Standing], Standing]], Awaitable[None]]


def _of(session: Session, resources: Resources, say: Say) -> dict[str, Method]:
    """The methods that only a session has."""

    async def ping(_: Exchange) -> dict[str, Any]:
        return {}

    async def set_level(exchange: Exchange) -> dict[str, Any]:
        level = rpc.text(exchange.params, "level")
        if level not in LEVELS:
            raise Fault(rpc.INVALID_PARAMS, f"'level' is one of: {', '.join(LEVELS)}.")
        session.log_level = level
        await say(lambda before: msgspec.structs.replace(before, log_level=level))
        return {}

    async def subscribe(exchange: Exchange) -> dict[str, Any]:
        # Of one that two servers have nobody can be told: whose it is could not be said.
        uri, share = await resources.check(msgspec.structs.replace(exchange, meta={}))
        if len(session.subscribed) >= MOST and uri not in session.subscribed:
            raise Fault(rpc.INVALID_PARAMS, f"A session subscribes to at most {MOST} resources.")
        letters = sum(map(len, session.subscribed | {uri}))
        if letters > _MOST_LETTERS:
            raise Fault(
                rpc.INVALID_PARAMS, f"The URIs of a session have at most {_MOST_LETTERS:,} letters."
            )
        if share is not None and not tells(share):
            raise Fault(rpc.INVALID_PARAMS, "Its server does not tell when a resource changes.")
        session.subscribed.add(uri)
        hearing = session.hearing
        if share is not None and hearing is not None and not await hearing.watch(share, uri):
            session.subscribed.discard(uri)
            raise Fault(
                rpc.INTERNAL_ERROR,
                "Its server cannot be asked to tell of it now, or too much is watched already. "
                "Unsubscribe from something, or try again later.",
            )
        await say(
            lambda before: msgspec.structs.replace(before, subscribed=before.subscribed | {uri})
        )
        return {}

    async def unsubscribe(exchange: Exchange) -> dict[str, Any]:
        uri = rpc.text(exchange.params, "uri")
        session.subscribed.discard(uri)
        await say(
            lambda before: msgspec.structs.replace(before, subscribed=before.subscribed - {uri})
        )
        if session.hearing is not None:
            session.hearing.drop(uri)
        return {}

    return {
        "ping": ping,
        "logging/setLevel": set_level,
        _SUBSCRIBE: subscribe,
        "resources/unsubscribe": unsubscribe,
    }
