"""The port to one connection with a server, whatever carries it."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from toolgate.asked import Line
from toolgate.upstreams.failures import Ending
from toolgate.upstreams.message import Json


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a server said of itself when it was first spoken to."""

    version: str
    is_modern: bool
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any]
    instructions: str = ""


class Ear(Protocol):
    """Who hears what a server says without being asked."""

    def noted(self, method: str, params: Json) -> None:
        """A notification that belongs to no call."""
        ...

    def missed(self) -> None:
        """Some may have been missed: whatever can change may have."""
        ...

    async def asked(self, method: str, params: Json, line: Line | None) -> Json:
        """A request of the server's; `FaultError` where it is refused."""
        ...


class Wire(Protocol):
    """A connection that was greeted. Errors are those of `failures`, and `FaultError`."""

    # How a session that has expired is begun anew; whoever greets says it.
    renew: Callable[[], Coroutine[Any, Any, None]] | None

    @property
    def gone(self) -> "asyncio.Future[Ending]":
        """Why it is over, once it is."""
        ...

    @property
    def signs(self) -> int:
        """How often it has given a sign of itself: one that did since is there."""
        ...

    async def ask(
        self,
        method: str,
        params: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """A request, and its result."""
        ...

    async def call(
        self,
        tool: str,
        args: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """A `tools/call`: what `ask` does, by the shortest way."""
        ...

    async def tell(self, method: str, params: Json | None = None) -> None:
        """A notification; nobody waits for it."""
        ...

    def adopt(self, welcome: Welcome) -> None:
        """From now on its revision is spoken."""
        ...

    async def listen(self, uris: Sequence[str]) -> None:
        """Hear what changes: lists, and these resources. It is said when this returns."""
        ...

    def repeat(self, headers: Mapping[str, Mapping[tuple[str, ...], str]]) -> None:
        """Which arguments of which tools stand in headers too."""
        ...

    def lose(self, why: str) -> None:
        """It is over: requests that wait are told so, and `gone` why."""
        ...

    async def close(self) -> None:
        """End it, and whatever was started for it."""
        ...
