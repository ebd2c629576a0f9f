"""One request and the way back to whoever sent it. What a method needs, whatever it came by."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from toolgate.caller import Caller
from toolgate.runtime import Runtime
from toolgate.server.mcp.rpc import METHOD_NOT_FOUND, Fault, Params, notification
from toolgate.server.mcp.sse import Stream
from toolgate.tenancy.keys import Key


class Back(Protocol):
    """The client, while one of its requests is answered."""

    def notify(self, method: str, params: Params) -> None:
        """Tell it something; where there is no way to, nothing is told."""
        ...

    async def ask(self, method: str, params: Params) -> Any:
        """Its answer to a request of ours. Only on the older revision."""
        ...


class Told:
    """A client of the newer revision: told on the way, and asked by the answer to its call."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def notify(self, method: str, params: Params) -> None:
        """On the stream of the request that it belongs to, if it has one."""
        if self._stream is not None:
            self._stream.put(notification(method, params))

    async def ask(self, method: str, params: Params) -> Any:  # noqa: ARG002  a port's
        """Not on the way."""
        raise Fault(METHOD_NOT_FOUND, f"A client of this revision is not asked {method!r}.")


# Nobody hears anything before the answer.
DEAF = Told(None)


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end: the key it came by, and what it said about itself."""

    key: Key
    caller: Caller
    version: str
    capabilities: Mapping[str, Any]
    # Of the older revision: what its session goes by.
    session: str = ""
    # Whether every request stands for itself.
    is_modern: bool = False


class Exchange(msgspec.Struct, frozen=True):
    """One request."""

    gate: Runtime
    peer: Peer
    method: str
    params: Params
    meta: Mapping[str, Any]
    back: Back = DEAF
    # From which level on log messages are wanted; none where it is empty.
    log_level: str = ""
