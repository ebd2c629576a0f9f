"""A session of the older revision, whatever carries it."""

import asyncio
from collections.abc import Callable
from typing import Any

from toolgate.call import Caller
from toolgate.server.mcp import resources, revision, rpc
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.exchange import Exchange, Peer
from toolgate.server.mcp.line import LEVELS
from toolgate.server.mcp.methods import Method
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.sessions import Session
from toolgate.server.mcp.sse import Stream
from toolgate.tenancy.keys import Key


class Talk:
    """What a session is begun with, and what it has beside the methods that all have."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering

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

    async def answer(self, message: Message, session: Session, stream: Stream) -> bytes:
        """The answer to a request; what is told and asked on the way goes by its stream."""
        task = asyncio.current_task()
        assert task is not None and message.id is not None  # noqa: S101, PT018  both are there
        session.running[message.id] = task, self._answering.changes_nothing(message)
        try:
            exchange = Exchange(
                self._answering.gate,
                session.peer,
                message.method,
                message.params,
                rpc.meta_of(message.params),
                Way(session, stream),
                session.log_level,
            )
            _status, body = await self._answering.answer(exchange, message.id, _of(session))
        except Fault as error:
            return rpc.fault(message.id, error)
        except asyncio.CancelledError:
            if task.uncancel():
                raise
            return rpc.fault(message.id, Fault(rpc.CANCELLED, "This request was cancelled."))
        finally:
            del session.running[message.id]
        return body

    def noted(self, message: Message, session: Session) -> None:
        """A notification. A cancellation ends what changes nothing; the rest runs to its end."""
        if message.method != "notifications/cancelled":
            return
        id_ = message.params.get("requestId")
        found = session.running.get(id_) if isinstance(id_, (str, int)) else None
        if found is not None and found[1]:
            found[0].cancel()

    async def listen(self, session: Session) -> Callable[[], None]:
        """Tell the session of changes, beside its answers, until the function that comes back is
        called.
        """

        def changed() -> None:
            for method in ("tools/list_changed", "resources/list_changed"):
                session.beside.put(rpc.notification(f"notifications/{method}", {}))
            for uri in sorted(session.subscribed):
                told = rpc.notification("notifications/resources/updated", {"uri": uri})
                session.beside.put(told)

        return await self._answering.changes.listen(
            session.peer.caller, changed, session.beside.close
        )


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


def _of(session: Session) -> dict[str, Method]:
    """The methods that only a session has."""

    async def ping(_: Exchange) -> dict[str, Any]:
        return {}

    async def set_level(exchange: Exchange) -> dict[str, Any]:
        level = rpc.text(exchange.params, "level")
        if level not in LEVELS:
            raise Fault(rpc.INVALID_PARAMS, f"'level' is one of: {', '.join(LEVELS)}.")
        session.log_level = level
        return {}

    async def subscribe(exchange: Exchange) -> dict[str, Any]:
        session.subscribed.add(await resources.check(exchange))
        return {}

    async def unsubscribe(exchange: Exchange) -> dict[str, Any]:
        session.subscribed.discard(rpc.text(exchange.params, "uri"))
        return {}

    return {
        "ping": ping,
        "logging/setLevel": set_level,
        "resources/subscribe": subscribe,
        "resources/unsubscribe": unsubscribe,
    }
