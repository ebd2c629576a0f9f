"""What a request is answered by, whatever carries it, and on whichever revision."""

import logging
from collections.abc import Mapping
from types import MappingProxyType

from toolgate.errors import ToolgateError
from toolgate.runtime import Runtime
from toolgate.server.mcp import listing, rpc
from toolgate.server.mcp.changes import Changes
from toolgate.server.mcp.exchange import Exchange
from toolgate.server.mcp.methods import Method, Methods
from toolgate.server.mcp.rpc import Fault, Id, Message
from toolgate.server.mcp.seal import Seal
from toolgate.spec.effect import Effect
from toolgate.telemetry.place import kind_of, place_of

log = logging.getLogger("toolgate.server")
_LIST = "tools/list"
_CALL = "tools/call"
_NO_MORE: Mapping[str, Method] = MappingProxyType({})


class Answering:
    """The methods over one house."""

    def __init__(self, gate: Runtime, *, secret: bytes, expose_tools: bool = True) -> None:
        self.gate = gate
        self.changes = Changes(gate)
        self._listing = listing.Listing()
        self.methods = Methods(self._listing, Seal(secret), expose_tools=expose_tools)

    async def answer(
        self, exchange: Exchange, id_: Id, more: Mapping[str, Method] = _NO_MORE
    ) -> tuple[int, bytes]:
        """HTTP's status, and the message. `more` are methods that only this client has."""
        modern = exchange.peer.is_modern
        try:
            if exchange.method == _LIST and self.methods.exposes(_LIST):
                specs = await self.gate.discover(exchange.peer.caller)
                found = listing.answer(id_, self._listing, specs, exchange.params, modern=modern)
                return 200, found
            method = more.get(exchange.method) or self.methods.answer
            return 200, rpc.result(id_, await method(exchange))
        except Fault as error:
            return rpc.STATUS.get(error.code, 200), rpc.fault(id_, error)
        except ToolgateError as error:
            return 200, rpc.fault(id_, told(error))
        except Exception as error:  # noqa: BLE001  whatever it is, the client hears no more of it
            log.error("%s failed with %s in %s", exchange.method, kind_of(error), place_of(error))  # noqa: TRY400
            broke = Fault(rpc.INTERNAL_ERROR, "Something went wrong here; it is in the log.")
            return 200, rpc.fault(id_, broke)

    def changes_nothing(self, message: Message) -> bool:
        """Whether a request can be given up in the middle. A side effect runs to its end: nobody
        could say how far it got.
        """
        if message.method != _CALL:
            return True
        spec = self.gate.catalog.current.get(str(message.params.get("name")))
        return spec is not None and spec.effect is Effect.PURE


def told(error: ToolgateError) -> Fault:
    """An error of ours where only a fault can tell it."""
    return Fault(rpc.INTERNAL_ERROR, error.message, {"code": error.code})
