"""`subscriptions/listen`: an answer that stays open and tells what has changed."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any, cast

from toolgate.errors import Overloaded
from toolgate.server.body import Receive
from toolgate.server.mcp import own, revision, rpc, sse
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.exchange import Exchange, Peer
from toolgate.server.mcp.faults import told
from toolgate.server.mcp.hearing import MOST, PROMPTS, RESOURCES, UPDATED, Hearing
from toolgate.server.mcp.holders import Holders
from toolgate.server.mcp.rpc import Fault, Message
from toolgate.server.mcp.task import Task
from toolgate.server.mcp.template import MOST as MOST_URI
from toolgate.server.mcp.watched import Watched
from toolgate.tenancy.keys import not_valid

# What is told of a list, and how a client asks for it.
_FLAGS = {
    "tools/list_changed": "toolsListChanged",
    RESOURCES: "resourcesListChanged",
    PROMPTS: "promptsListChanged",
}
_URIS = "resourceSubscriptions"


class _Subscription:
    """One of them: what it is told of, and where."""

    def __init__(self, id_: rpc.Id, stream: sse.Stream, heard: dict[str, Any]) -> None:
        self.meta = {revision.SUBSCRIPTION: id_}
        self.heard = heard
        self._stream = stream

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Whatever it is."""
        known = {"_meta": params.get("_meta", {}) | self.meta}
        self._stream.put(rpc.notification(f"notifications/{method}", params | known))

    def tell_wanted(self, method: str, params: dict[str, Any]) -> None:
        """Of lists only those that were asked for."""
        flag = _FLAGS.get(method)
        if flag is None or self.heard.get(flag):
            self.tell(method, params)

    def told(self, shown: Mapping[str, Any]) -> None:
        """How a task stands."""
        self.tell("tasks", dict(shown))


class Listeners:
    """Those who listen."""

    def __init__(self, answering: Answering) -> None:
        self._gate = answering.gate
        self._changes = answering.changes
        self._tasks = answering.methods.tasks
        self._others = answering.others
        self._resources = answering.methods.resources
        self._holders = Holders(lambda: answering.gate.tenancy.world)
        # What each ends with, and where: on standard output all have one stream.
        self._open: dict[_Subscription, tuple[sse.Stream, bytes]] = {}

    def close(self) -> None:
        """Each stream ends with its answer: on purpose, and not by a broken line."""
        for stream, answer in self._open.values():
            stream.put(answer)
            stream.close()

    async def listen(self, message: Message, peer: Peer, receive: Receive, send: sse.Send) -> None:
        """Acknowledge what is heard, then tell of it until the client goes."""
        stream = sse.Stream("")

        def over() -> None:
            _refused(stream, message.id, told(not_valid()))

        async with self.heard(message, peer, stream):
            gone = asyncio.create_task(sse.left(receive))
            try:
                with self._holders.held(lambda: peer.key, over):
                    await sse.write_until(gone, send, stream)
            finally:
                gone.cancel()

    @asynccontextmanager
    async def heard(self, message: Message, peer: Peer, stream: sse.Stream) -> AsyncGenerator[bool]:
        """As long as this is open, the stream is told; unless it is `False`, and was answered."""
        exchange = Exchange(self._gate, peer, message.method, message.params, {})
        try:
            wanted, tasks = await self._wanted(message, peer)
        except Fault as error:
            _refused(stream, message.id, error)
            yield False
            return
        heard, uris = self._honoured(wanted, exchange)
        if tasks:
            heard["taskIds"] = [one.id for one in tasks]
        one = _Subscription(message.id, stream, heard)

        def changed() -> None:
            for method in _FLAGS:
                one.tell_wanted(method, {})
            for uri in uris:
                one.tell(UPDATED, {"uri": uri})

        with ExitStack() as leaving:
            hearing = Hearing(self._others, peer.caller, one.tell_wanted)
            leaving.callback(hearing.close)
            watched = await self._watched(wanted, exchange, hearing)
            if watched:
                heard[_URIS] = [*uris, *watched]
            one.tell("subscriptions/acknowledged", {"notifications": heard})
            try:
                leaving.callback(await self._changes.listen(peer, changed, stream.close))
            except Overloaded as error:
                _refused(stream, message.id, told(error))
                yield False
                return
            over = {"resultType": "complete", "_meta": one.meta}
            self._open[one] = stream, rpc.result(message.id, over)
            leaving.callback(self._open.pop, one)
            leaving.callback(_followed(tasks, one))
            yield True

    async def _wanted(
        self, message: Message, peer: Peer
    ) -> tuple[dict[str, Any], list[Task | Watched]]:
        wanted: object = message.params.get("notifications")
        if not isinstance(wanted, dict):
            raise Fault(rpc.INVALID_PARAMS, "'notifications' says what is to be told.")
        if self._changes.is_full(peer):
            raise Fault(rpc.INTERNAL_ERROR, "Too many listen here already; try again later.")
        found = cast("dict[str, Any]", wanted)
        ids = found.get("taskIds")
        if ids is not None and type(ids) is not list:
            raise Fault(rpc.INVALID_PARAMS, "'taskIds' is a list of tasks.")
        return found, [] if ids is None else await self._tasks.of(peer, cast("list[Any]", ids))

    def _honoured(
        self, wanted: dict[str, Any], exchange: Exchange
    ) -> tuple[dict[str, Any], list[str]]:
        """What of it is told here. Prompts are others': without any, nobody is promised to hear."""
        names = [name for name in _FLAGS.values() if wanted.get(name) is True]
        if not self._others.are_there:
            names = [name for name in names if name != _FLAGS[PROMPTS]]
        heard: dict[str, Any] = dict.fromkeys(names, True)
        mine = own.uris(exchange)
        uris = [uri for uri in _uris(wanted) if uri in mine]
        if uris:
            heard[_URIS] = uris
        return heard, uris

    async def _watched(
        self, wanted: dict[str, Any], exchange: Exchange, hearing: Hearing
    ) -> list[str]:
        """Resources of other servers that the caller may read, and that are told of."""
        found: list[str] = []
        for uri in _uris(wanted) if self._others.are_there else ():
            # Of one that two servers have nobody can be told: whose it is could not be said.
            with suppress(Fault):
                share = await self._resources.place(exchange, uri)
                if share is not None and await hearing.watch(share, uri):
                    found.append(uri)
        return found


def _refused(stream: sse.Stream, id_: rpc.Id, error: Fault) -> None:
    stream.put(rpc.fault(id_, error))
    stream.close()


def _followed(tasks: list[Task | Watched], one: _Subscription) -> Callable[[], None]:
    """Told of from now on, until what comes back is called."""
    leaving = [task.follow(one.told) for task in tasks]

    def leave() -> None:
        for left in leaving:
            left()

    return leave


def _uris(wanted: dict[str, Any]) -> list[str]:
    given = wanted.get(_URIS)
    asked = cast("list[Any]", given)[:MOST] if isinstance(given, list) else []
    return list(dict.fromkeys(uri for uri in asked if type(uri) is str and len(uri) <= MOST_URI))
