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

_MOST_URIS = 256


class Listeners:
    """Those who listen."""

    def __init__(self, answering: Answering) -> None:
        self._gate = answering.gate
        self._changes = answering.changes
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
            writing = asyncio.create_task(sse.write(send, stream))
            gone = asyncio.create_task(sse.left(receive))
            try:
                await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                writing.cancel()
                gone.cancel()

    @asynccontextmanager
    async def heard(self, message: Message, peer: Peer, stream: sse.Stream) -> AsyncGenerator[None]:
        """As long as this is open, the stream is told."""
        meta = {revision.SUBSCRIPTION: message.id}
        wanted: object = message.params.get("notifications")
        exchange = Exchange(self._gate, peer, message.method, message.params, meta)
        if not isinstance(wanted, dict) or self._changes.is_full:
            stream.put(rpc.fault(message.id, _refused(cast("object", wanted))))
            stream.close()
            yield
            return
        heard, uris = _honoured(cast("dict[str, Any]", wanted), exchange)

        def tell(method: str, params: dict[str, Any]) -> None:
            stream.put(rpc.notification(f"notifications/{method}", params | {"_meta": meta}))

        def changed() -> None:
            if heard.get("toolsListChanged"):
                tell("tools/list_changed", {})
            if heard.get("resourcesListChanged"):
                tell("resources/list_changed", {})
            for uri in uris:
                tell("resources/updated", {"uri": uri})

        tell("subscriptions/acknowledged", {"notifications": heard})
        leave = await self._changes.listen(peer.caller, changed)
        over = {"resultType": "complete", "_meta": meta}
        self._open[stream] = rpc.result(message.id, over)
        try:
            yield
        finally:
            del self._open[stream]
            leave()


def _refused(wanted: object) -> Fault:
    if not isinstance(wanted, dict):
        return Fault(rpc.INVALID_PARAMS, "'notifications' says what is to be told.")
    return Fault(rpc.INTERNAL_ERROR, "Too many listen here already; try again later.")


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
