"""Keeps one connection: begins it, and begins it anew where it went, after a growing pause."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Protocol

from toolgate import clock
from toolgate.errors import ToolgateError
from toolgate.retries import pause
from toolgate.upstreams.failures import AwayError, BrokenError, Ending, detail_of
from toolgate.upstreams.greeting import greeted
from toolgate.upstreams.message import FaultError
from toolgate.upstreams.upstream import NOT_YET
from toolgate.upstreams.wire import Ear, Welcome, Wire

log = logging.getLogger("toolgate.upstreams")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
# One that lasted so long and goes is begun anew at once.
_LASTING_NS = 10_000_000_000
_NOBODY = Welcome(version="", is_modern=False, capabilities={}, info={})


class Dial(Protocol):
    """Makes connections to one server."""

    @property
    def name(self) -> str: ...

    # Seconds that a server may take to begin.
    @property
    def patience(self) -> float: ...

    # Seconds of silence after which the newer revision is taken to be unknown to it.
    @property
    def silence(self) -> float: ...

    async def wire(self, ear: Ear) -> Wire:
        """A new connection, not greeted yet. `AwayError` where there is none."""
        ...


class Keeper:
    """At most one connection at a time, and one task that looks after it."""

    def __init__(
        self,
        dial: Dial,
        ear: Ear,
        *,
        asks: frozenset[str],
        begun: Callable[[Wire], Awaitable[None]],
        changed: Callable[[], object],
        is_modern: bool | None = None,
    ) -> None:
        """`is_modern`: the revision that an operator has chosen."""
        self._dial = dial
        self._ear = ear
        self._asks = asks
        self._begun = begun
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._trying: asyncio.Future[None] | None = None
        self._next_ns = 0
        self._chosen = self._is_modern = is_modern
        self._is_closed = False
        self.wire: Wire | None = None
        self.welcome = _NOBODY
        # Why there is none: for whoever calls, and for an operator.
        self.why = self.problem = NOT_YET
        # What its program wrote before it ended.
        self.last_words: tuple[str, ...] = ()

    async def tried(self, seconds: float) -> None:
        """Until the try that is under way is over, but no longer than this."""
        if self._is_closed:
            self.why = self.problem = "it is closed."
            return
        if self._task is None or self._task.done():
            self._trying = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._keep())
        trying = self._trying
        if trying is not None:
            await asyncio.wait({trying}, timeout=seconds)

    def wait_left(self) -> float:
        """Seconds until it is tried again."""
        return max(0.0, (self._next_ns - clock.monotonic_ns()) / 1e9)

    async def close(self) -> None:
        """No more is tried."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        wire, self.wire = self.wire, None
        if wire is not None:
            await wire.close()
        self.why = self.problem = "it is closed."

    async def _keep(self) -> None:
        attempt = 0
        while True:
            began_ns = clock.monotonic_ns()
            if self._trying is None:
                self._trying = asyncio.get_running_loop().create_future()
            wire = await self._tried()
            trying, self._trying = self._trying, None
            if not trying.done():
                trying.set_result(None)
            if wire is not None:
                await self._over(wire)
                if clock.monotonic_ns() - began_ns > _LASTING_NS:
                    attempt = 0
            await self._rest(attempt, was_up=wire is not None)
            attempt += 1

    async def _tried(self) -> Wire | None:
        """One try."""
        try:
            wire = await self._dial.wire(self._ear)
        except (AwayError, BrokenError, ToolgateError, OSError) as error:
            self._note(error)
            return None
        try:
            self.welcome = await self._greeted(wire)
            await self._begun(wire)
        except (AwayError, BrokenError, FaultError, ToolgateError, TimeoutError, OSError) as error:
            if wire.gone.done() and self._chosen is None:
                # It may be the first question that it cannot bear: next time the older one.
                self._is_modern = False if self._is_modern is None else None
            self._note(error, wire.gone.result() if wire.gone.done() else None)
            await wire.close()
            return None
        except BaseException:
            await wire.close()
            raise
        self.wire = wire
        self._is_modern = self.welcome.is_modern
        self.why = self.problem = ""
        self._changed()
        return wire

    async def _greeted(self, wire: Wire) -> Welcome:
        async def renew() -> None:
            self.welcome = await self._welcomed(wire, is_modern=self._is_modern)
            await self._begun(wire)
            self._changed()

        wire.renew = renew
        return await self._welcomed(wire, is_modern=self._is_modern)

    async def _welcomed(self, wire: Wire, *, is_modern: bool | None) -> Welcome:
        seconds = self._dial.patience
        async with asyncio.timeout(seconds):
            return await greeted(
                wire,
                seconds=seconds,
                patience=min(seconds, self._dial.silence),
                asks=self._asks,
                is_modern=is_modern,
            )

    async def _over(self, wire: Wire) -> None:
        """Until it is gone."""
        ending: Ending = await asyncio.shield(wire.gone)
        self.wire = None
        self._ended(ending)
        log.warning("MCP server %s went away: %s%s", self._dial.name, ending.detail, self._more())
        self._changed()
        await wire.close()

    async def _rest(self, attempt: int, *, was_up: bool) -> None:
        if was_up and attempt == 0:
            return
        roll = 0.5 + random.random() / 2  # noqa: S311  no secret
        wait = pause(max(attempt, 1), base=_FIRST_PAUSE, most=_LONGEST_PAUSE, roll=roll)
        self._next_ns = clock.monotonic_ns() + int(wait * 1e9)
        await asyncio.sleep(wait)

    def _note(self, error: Exception, ending: Ending | None = None) -> None:
        is_new = not self.problem or self.problem == NOT_YET
        if ending is not None:
            self._ended(ending)
        else:
            known = isinstance(error, (AwayError, BrokenError))
            self.why = error.why if known else "it does not answer."
            self.problem = detail_of(error)
        if is_new:
            name, more = self._dial.name, self._more()
            log.warning("MCP server %s cannot be reached: %s%s", name, self.problem, more)

    def _ended(self, ending: Ending) -> None:
        self.why, self.problem, self.last_words = ending

    def _more(self) -> str:
        """Where the rest stands of what its program said: a log takes a line."""
        if len(self.last_words) <= 1:
            return ""
        return f" Its last lines: toolgate servers show {self._dial.name}"
