"""Calls that are the same piece of business: one runs, the others wait for its answer."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any

from toolgate import clock
from toolgate.call import Call, Grant
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Journal, Outdated
from toolgate.ledger.machine import Action
from toolgate.ledger.state import OPEN
from toolgate.tenancy.parts import EVERYONE, KEYS, TENANT

# How soon a twin in another process is looked at again: at first, and after a while.
_SOON = 0.02
_LATER = 0.25
# So many wait in one process, each with a look now and then; who comes then is told at once.
_MOST_WAITING = 256


class Twins:
    """Claims calls. Who runs in this process wakes those that wait for it; others are looked at."""

    def __init__(self, journal: Journal, wait: float, *, guarded: bool = False) -> None:
        self._journal = journal
        self._guarded = guarded
        self._wait = wait
        # Those that run here, and what wakes whoever waits for one; nearly always nobody does.
        self._running: dict[str, asyncio.Event | None] = {}
        self._waiting = 0
        # Claims, made or being made, whose callers have gone away.
        self._claiming: dict[str, asyncio.Future[Begun]] = {}

    async def begin(self, call: Call, intent: Entry) -> Begun:
        """The claim; a twin that runs is waited for as long as the caller likes."""
        asked = call.asked.wait_s
        wait = self._wait if asked is None else asked
        until_ns = min(call.until_ns, clock.monotonic_ns() + round(wait * 1e9))
        pauses = _pauses()
        # An id that no other attempt can have says by itself whose a row is.
        claim = self._held if call.approval or call.asked.delivered else self._begun
        while True:
            begun = await claim(call, intent)
            if begun.action in {Action.RUN, Action.AGAIN}:
                self.owned(begun.entry)
            if begun.action is not Action.WAIT or self._waiting >= _MOST_WAITING:
                return begun
            self._waiting += 1
            try:
                if not await self._waited(begun.entry, until_ns, pauses):
                    return begun
            except asyncio.CancelledError:
                self._claiming[call.id] = _known(begun)
                raise
            finally:
                self._waiting -= 1

    async def _waited(self, entry: Entry, until_ns: int, pauses: Iterator[float]) -> bool:
        """Whether the store has something new to say about a twin; else its time is over."""
        twin: Entry | None = entry
        while twin is not None and twin.state in OPEN:
            left = (until_ns - clock.monotonic_ns()) / 1e9
            if left <= 0:
                return False
            await self._ended(twin, min(next(pauses), left))
            twin = await self._journal.find(entry.tenant, twin.call_id)
            if twin is not None and _looks_lost(twin):
                # The store knows for sure, and says whose it is now.
                return True
        return True

    def left(self, call: Call) -> "asyncio.Future[Begun] | None":
        """The claim whose caller went away; nothing where its own id says what became of it."""
        return self._claiming.pop(call.id, None)

    async def _held(self, call: Call, intent: Entry) -> Begun:
        """The store says which attempt goes on, and under which id, also when nobody waits for it.

        One with an approval goes on under the id that it waited by. One from a queue has the id
        under which another attempt may be running.
        """
        claiming = asyncio.ensure_future(self._begun(call, intent))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            self._claiming[call.id] = claiming
            raise

    def _begun(self, call: Call, intent: Entry) -> Coroutine[Any, Any, Begun]:
        if 0 < call.grant.end_ns <= clock.unix_ns():
            # What its caller came by has ended on the way: the gate says so, as of a revoked key.
            raise Outdated
        basis = basis_of(call.grant) if self._guarded else None
        return self._journal.begin(intent, may_start=call.may_start, basis=basis)

    def owned(self, entry: Entry) -> None:
        """It runs here from now on."""
        self._running[entry.call_id] = None

    def ended(self, entry: Entry) -> None:
        """Wake those that wait."""
        running = self._running.pop(entry.call_id, None)
        if running is not None:
            running.set()

    async def _ended(self, twin: Entry, most: float) -> None:
        if twin.call_id not in self._running:
            await asyncio.sleep(most)
            return
        running = self._running[twin.call_id]
        if running is None:
            running = self._running[twin.call_id] = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most):
                await running.wait()


def _known(begun: Begun) -> "asyncio.Future[Begun]":
    answered: asyncio.Future[Begun] = asyncio.get_running_loop().create_future()
    answered.set_result(begun)
    return answered


def basis_of(grant: Grant) -> Basis:
    """What a grant rests on: what holds for everyone, for the caller's tenant, and for its key."""
    caller = grant.caller
    parts = (EVERYONE, TENANT + caller.tenant)
    return Basis(grant.tenancy_revision, (*parts, KEYS) if caller.key else parts)


def _pauses() -> Iterator[float]:
    pause = _SOON
    while True:
        yield pause
        pause = min(2 * pause, _LATER)


def _looks_lost(twin: Entry) -> bool:
    """Whether its lease is over, by a clock that need not be the store's."""
    return twin.lease_ns is not None and clock.unix_ns() >= twin.lease_ns
