"""Who wants to know when a caller's tools change, and what tells them."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import NamedTuple

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import Overloaded, ToolgateError, Unauthenticated
from toolgate.runtime import Runtime
from toolgate.server.mcp.exchange import Peer
from toolgate.spec.tool import ToolSpec

log = logging.getLogger("toolgate.server")
# A change on another node is seen as soon; a decision never waits for this.
EVERY = 0.25
# What only time changes, such as a key that ends, is seen as late as this.
_LOOK_NS = 30 * 10**9
MOST = 1_000
# One key must not keep all others from listening.
MOST_OF_KEY = 64


class _Listener(NamedTuple):
    caller: Caller
    key: str
    tell: Callable[[], None]
    end: Callable[[], None]


class Changes:
    """Looks at the lists of those who listen; as long as nobody does, at nothing."""

    def __init__(self, gate: Runtime) -> None:
        self._gate = gate
        self._listeners: dict[int, _Listener] = {}
        self._last: dict[int, tuple[ToolSpec, ...]] = {}
        self._number = 0
        self._watching: asyncio.Task[None] | None = None

    def is_full(self, peer: Peer) -> bool:
        """Whether no more can listen, or no more of this key."""
        if len(self._listeners) >= MOST:
            return True
        same = sum(one.key == peer.key.id for one in self._listeners.values())
        return same >= MOST_OF_KEY

    async def listen(
        self, peer: Peer, tell: Callable[[], None], end: Callable[[], None]
    ) -> Callable[[], None]:
        """Be told of every change from now on, until the function that comes back is called.

        `end` is called once the caller's key opens nothing any more.
        """
        if self.is_full(peer):
            raise Overloaded("Too many listen here already; try again later.", retry_after=60)
        self._number += 1
        number = self._number
        # Before anything is waited for: many who come at once must not all find the same place.
        self._listeners[number] = _Listener(peer.caller, peer.key.id, tell, end)
        try:
            listed = await self._listed(peer.caller)
        except BaseException:
            self._listeners.pop(number, None)
            raise
        if listed is not None and number in self._listeners:
            self._last.setdefault(number, listed)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="toolgate-mcp-changes")

        def leave() -> None:
            self._listeners.pop(number, None)
            self._last.pop(number, None)

        return leave

    async def close(self) -> None:
        """Nobody is told anything any more."""
        self._listeners.clear()
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    async def _listed(self, caller: Caller) -> tuple[ToolSpec, ...] | None:
        try:
            return await self._gate.gate.listing(caller)
        except ToolgateError:
            return None

    async def _watch(self) -> None:
        standing, looked_ns = self._gate.gate.standing, clock.monotonic_ns()
        while self._listeners:
            await asyncio.sleep(EVERY)
            now, now_ns = self._gate.gate.standing, clock.monotonic_ns()
            is_same = all(one is other for one, other in zip(now, standing, strict=True))
            if is_same and now_ns - looked_ns < _LOOK_NS:
                continue
            standing, looked_ns = now, now_ns
            await self._look()

    async def _look(self) -> None:
        for number, one in list(self._listeners.items()):
            try:
                now = await self._gate.gate.listing(one.caller)
            except Unauthenticated:
                self._listeners.pop(number, None)
                one.end()
                continue
            except ToolgateError as error:
                log.warning("the tools of a listener could not be listed (%s)", error.code)
                continue
            before = self._last.get(number)
            if now is before or number not in self._listeners:
                continue
            self._last[number] = now
            if before is None or _named(before) != _named(now):
                one.tell()


def _named(specs: tuple[ToolSpec, ...]) -> list[str]:
    return [spec.fingerprint for spec in specs]
