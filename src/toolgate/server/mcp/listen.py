"""`subscriptions/listen`: an answer that stays open and tells what has changed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from toolgate.server.body import Receive
from toolgate.server.mcp import revision, rpc, sse
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.exchange import Exchange, Peer
from toolgate.server.mcp.resources import OWN
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.task import Task

_MOST_URIS = 256


class Listeners:
    """Those who listen."""

    def __init__(self, answering: Answering) -> None:
        self._gate = answering.gate
        self._changes = answering.changes
        self._tasks = answering.methods.tasks
        self._open: dict[sse.Stream, bytes] = {}

    def close(self) -> None:
        """Each stream ends with its answer: on purpose, and not by a broken line."""
        for stream, answer in self._open.items():
            stream.put(answer)
            stream.close()

    async def listen(self, message: Message, peer: Peer, receive: Receive, send: sse.Send) -> None:
        """Acknowledge what is heard, then tell of it until the client goes."""
        stream = sse.Stream("")
        async with self.heard(message, peer, stream):
            gone = asyncio.create_task(sse.left(receive))
            try:
                await sse.write_until(gone, send, stream)
            finally:
                gone.cancel()

    @asynccontextmanager
    async def heard(self, message: Message, peer: Peer, stream: sse.Stream) -> AsyncGenerator[None]:
        """As long as this is open, the stream is told."""
        meta = {revision.SUBSCRIPTION: message.id}
        exchange = Exchange(self._gate, peer, message.method, message.params, meta)
        try:
            wanted, tasks = self._wanted(message, peer)
        except Fault as error:
            stream.put(rpc.fault(message.id, error))
            stream.close()
            yield
            return
        heard, uris = _honoured(wanted, exchange)
        if tasks:
            heard["taskIds"] = [one.id for one in tasks]

        def tell(method: str, params: dict[str, Any]) -> None:
            known = {"_meta": params.get("_meta", {}) | meta}
            stream.put(rpc.notification(f"notifications/{method}", params | known))

        def told(task: Task) -> None:
            tell("tasks", task.shown())

        def changed() -> None:
            if heard.get("toolsListChanged"):
                tell("tools/list_changed", {})
            if heard.get("resourcesListChanged"):
                tell("resources/list_changed", {})
            for uri in uris:
                tell("resources/updated", {"uri": uri})

        tell("subscriptions/acknowledged", {"notifications": heard})
        leave = await self._changes.listen(peer.caller, changed, stream.close)
        over = {"resultType": "complete", "_meta": meta}
        self._open[stream] = rpc.result(message.id, over)
        try:
            for one in tasks:
                one.listeners.add(told)
                # It may have changed since its client looked.
                told(one)
            yield
        finally:
            del self._open[stream]
            leave()
            for one in tasks:
                one.listeners.discard(told)

    def _wanted(self, message: Message, peer: Peer) -> tuple[dict[str, Any], list[Task]]:
        wanted: object = message.params.get("notifications")
        if not isinstance(wanted, dict):
            raise Fault(rpc.INVALID_PARAMS, "'notifications' says what is to be told.")
        if self._changes.is_full:
            raise Fault(rpc.INTERNAL_ERROR, "Too many listen here already; try again later.")
        found = cast("dict[str, Any]", wanted)
        ids = found.get("taskIds")
        if ids is not None and type(ids) is not list:
            raise Fault(rpc.INVALID_PARAMS, "'taskIds' is a list of tasks.")
        return found, [] if ids is None else self._tasks.of(peer, cast("list[Any]", ids))


def _honoured(wanted: dict[str, Any], exchange: Exchange) -> tuple[dict[str, Any], list[str]]:
    """What of it is told here. Prompts never change, so nobody is promised to hear of that."""
    heard: dict[str, Any] = {
        name: True
        for name in ("toolsListChanged", "resourcesListChanged")
        if wanted.get(name) is True
    }
    given = wanted.get("resourceSubscriptions")
    asked = cast("list[Any]", given)[:_MOST_URIS] if isinstance(given, list) else []
    own = {one.template.replace("{id}", one.own(exchange)) for one in OWN}
    uris = [uri for uri in asked if uri in own]
    if uris:
        heard["resourceSubscriptions"] = uris
    return heard, uris
