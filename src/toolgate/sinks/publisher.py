"""Sends what waits in the outbox: at least once, those of one key in their order."""

import asyncio
import logging
import random
from typing import Protocol

from toolgate.call import Event
from toolgate.crash import crash_here
from toolgate.errors import StoreError
from toolgate.ledger.events import MOST_WAITING, Outbox, Waiting

_log = logging.getLogger("toolgate.events")
# How many are on their way at a time, and how long nobody else is given them.
_AT_ONCE = 16
_LEASE = 30.0
# How long nothing is looked for where nothing was.
_PAUSE = 0.2
_FIRST_AGAIN = 0.5
_LAST_AGAIN = 300.0
# How often the rows are counted, in rounds without news.
_COUNT_EVERY = 5


class Sink(Protocol):
    """Where events go."""

    async def send(self, event: Event) -> str:
        """Nothing once it has arrived; else what went wrong."""
        ...


class Publisher:
    """One of each process; several of them share the work."""

    def __init__(self, outbox: Outbox, sink: Sink, *, most: int = MOST_WAITING) -> None:
        self._outbox = outbox
        self._sink = sink
        self._most = most
        self._is_full = False
        self._fails = False

    def is_full(self) -> bool:
        """Whether so many wait that nothing more can be told."""
        return self._is_full

    async def run(self) -> None:
        """Until it is cancelled. A store or a receiver that is away is asked again."""
        rounds = 0
        while True:
            try:
                if rounds % _COUNT_EVERY == 0:
                    await self.count()
                rounds += 1
                found = await self.once()
            except StoreError as error:
                _log.warning("events wait: %s", error)
                found = 0
            except Exception as error:  # noqa: BLE001  whoever sends must not end before the rest
                # Its own words can hold what was being sent.
                _log.error("events wait: looking for them failed with %s", type(error).__name__)
                found = 0
            if not found:
                await asyncio.sleep(_PAUSE)

    async def count(self) -> None:
        """Look how many wait."""
        was_full = self._is_full
        self._is_full = await self._outbox.waiting() >= self._most
        if self._is_full and not was_full:
            _log.error("%d events wait to be sent: side effects are refused", self._most)

    async def once(self) -> int:
        """Send what is due; how many that were."""
        due = await self._outbox.take(_AT_ONCE, _LEASE)
        if not due:
            return 0
        crash_here("CP8")
        problems = await asyncio.gather(*(self._sent(one.event) for one in due))
        arrived = [one.number for one, problem in zip(due, problems, strict=True) if not problem]
        if arrived:
            await self._outbox.sent(arrived)
        for one, problem in zip(due, problems, strict=True):
            if problem:
                await self._outbox.later(one.number, _patience(one))
        self._told(next((problem for problem in problems if problem), ""))
        return len(due)

    async def _sent(self, event: Event) -> str:
        """What a sink raises is a problem of this event, not of those beside it."""
        try:
            return await self._sink.send(event)
        except Exception as error:  # noqa: BLE001  whatever it is, this one has not arrived
            return f"it failed with {type(error).__name__}"

    def _told(self, problem: str) -> None:
        """Once when it begins, and once when it is over."""
        if problem and not self._fails:
            _log.warning("events cannot be sent and wait: %s", problem)
        elif self._fails and not problem:
            _log.warning("events are sent again")
        self._fails = bool(problem)


def _patience(one: Waiting) -> float:
    """Longer each time, and never the same for two."""
    longest = min(_FIRST_AGAIN * 2 ** min(one.attempts - 1, 20), _LAST_AGAIN)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret hangs on it
