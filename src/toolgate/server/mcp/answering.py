"""What a request is answered by, whatever carries it, and on whichever revision."""

from collections.abc import Mapping
from types import MappingProxyType

from toolgate.runtime import Runtime
from toolgate.server.mcp import listing, revision, rpc
from toolgate.server.mcp.changes import Changes
from toolgate.server.mcp.exchange import Back, Exchange, Peer
from toolgate.server.mcp.faults import fault_of
from toolgate.server.mcp.methods import Method, Methods
from toolgate.server.mcp.others import Others
from toolgate.server.mcp.post import Post
from toolgate.server.mcp.rpc import Id, Message
from toolgate.server.mcp.seal import Seal
from toolgate.server.mcp.tasks import AFTER
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

_LIST = "tools/list"
_CALL = "tools/call"
# What every request of the newer revision says in `_meta`.
_PLAIN = frozenset({revision.VERSION, revision.CLIENT, revision.CAPABILITIES})
_NO_MORE: Mapping[str, Method] = MappingProxyType({})


class Answering:
    """The methods over one house."""

    def __init__(
        self, gate: Runtime, *, expose_tools: bool = True, task_after: float = AFTER
    ) -> None:
        self.gate = gate
        self._exposes_tools = expose_tools
        # Between nodes.
        self.post = Post(gate.shelf)
        self.changes = Changes(gate)
        self.listing = listing.Listing()
        self.others = Others(gate, exposed=expose_tools)
        self.methods = Methods(
            gate,
            self.listing,
            Seal(gate.secret),
            self.others,
            self.post,
            expose_tools=expose_tools,
            task_after=task_after,
        )

    async def close(self, patience: float) -> None:
        """Nobody is answered any more; side effects get so many seconds to come to their end."""
        await self.changes.close()
        await self.methods.tasks.close(self.gate, patience)
        await self.post.close()

    async def answer(
        self, exchange: Exchange, id_: Id, more: Mapping[str, Method] = _NO_MORE
    ) -> tuple[int, bytes]:
        """HTTP's status, and the message. `more` are methods that only this client has."""
        modern = exchange.peer.is_modern
        try:
            if exchange.method == _LIST and self.methods.exposes(_LIST):
                specs = await self.gate.discover(exchange.peer.caller)
                found = listing.answer(id_, self.listing, specs, exchange.params, modern=modern)
                return 200, found
            method = more.get(exchange.method) or self.methods.answer
            return 200, rpc.result(id_, await method(exchange))
        except Exception as error:  # noqa: BLE001  whatever it is, the client hears no more of it
            fault = fault_of(error, exchange.method)
            return rpc.STATUS.get(fault.code, 200), rpc.fault(id_, fault)

    def exchange(self, message: Message, peer: Peer, back: Back) -> Exchange:
        """A request of the newer revision, which says everything itself."""
        meta = message.params["_meta"]
        level = meta.get(revision.LOG_LEVEL, "")
        return Exchange(self.gate, peer, message.method, message.params, meta, back, level)

    async def plainly(self, exchange: Exchange, spec: ToolSpec, id_: Id) -> tuple[int, bytes]:
        """As `answer`, for a call that `is_plain`."""
        try:
            return 200, await self.methods.calls.plainly(exchange, spec, id_)
        except Exception as error:  # noqa: BLE001  as above
            fault = fault_of(error, exchange.method)
            return rpc.STATUS.get(fault.code, 200), rpc.fault(id_, fault)

    def is_plain(self, message: Message, peer: Peer, spec: ToolSpec) -> bool:
        """Whether it is a call of a pure tool that says nothing but its arguments."""
        params = message.params
        return (
            spec.effect is Effect.PURE
            and params["_meta"].keys() <= _PLAIN
            and "requestState" not in params
            and "inputResponses" not in params
            and "extensions" not in peer.capabilities
            and self._exposes_tools
        )

    def changes_nothing(self, message: Message) -> bool:
        """Whether a request can be given up in the middle. A side effect runs to its end: nobody
        could say how far it got.
        """
        if message.method != _CALL:
            return True
        spec = self.gate.catalog.current.get(str(message.params.get("name")))
        return spec is not None and spec.effect is Effect.PURE
