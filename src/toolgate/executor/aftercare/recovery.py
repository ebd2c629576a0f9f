"""Looks after calls whose owner is gone; and keeps alive the claims of those that run here.

Each one is claimed first, under a fence of its own, and then run again, asked about, or parked as
unknown: as its tool allows. One that cannot be looked after stops none of the others, nor does one
that takes long, nor a tenant that has many.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from toolgate import clock
from toolgate.call import Grant, Output
from toolgate.errors import CallRefused, StoreError, ToolgateError
from toolgate.executor.aftercare import recalled
from toolgate.executor.aftercare.probing import Probing, failed
from toolgate.executor.aftercare.undo import Decide, Undo
from toolgate.executor.aftercare.unsure import Unsure
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Journal
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State
from toolgate.queue.queue import OPEN as QUEUED
from toolgate.queue.queue import Queues

log = logging.getLogger("toolgate.recovery")
Resume = Callable[[Grant, Entry, dict[str, Any]], Awaitable[Output]]
_SLOWEST = 5.0
# How many are begun together, and how many one tenant has at the same time.
_AT_ONCE = 16
# What takes longer than this takes no place any more that another could have.
_SLOW_NS = 5_000_000_000
# How many are remembered of those that have had their turn.
_MOST_PASSED = 1_000
# A call that takes its process with it each time is not tried for ever.
_MOST_TRIES = 5
# How long closing waits for what is being looked after.
_GRACE = 5.0


class Ready(NamedTuple):
    """What a call needs to be run again; or why it cannot be."""

    grant: Grant | None
    args: dict[str, Any]
    why: str = ""


_NO_WORKER = Ready(None, {}, "no worker came to its end with it")


class Work(NamedTuple):
    """What is being looked after: whose it is, since when, by whom."""

    tenant: str
    since_ns: int
    task: "asyncio.Task[None]"


class Recover:
    """The periodic look. `lease` is in seconds; `always`: a person is asked about every call.

    What `queue` has is run by its workers only: here it is at most called unknown.
    """

    def __init__(  # noqa: PLR0913  every room that it looks into, by its name
        self,
        ledger: Ledger,
        journal: Journal,
        *,
        decide: Decide,
        resume: Resume,
        probing: Probing,
        undo: Undo,
        lease: float,
        always: bool = False,
        queue: Queues | None = None,
    ) -> None:
        self._ledger = ledger
        self._journal = journal
        self._decide = decide
        self._resume = resume
        self._probing = probing
        self._undo = undo
        self._lease_ns = round(lease * 1e9)
        self._every = _often(lease)
        self._always = always
        self._queue = queue
        self._looking: asyncio.Task[None] | None = None
        self._working: dict[str, Work] = {}
        # Lost ones that could not be looked after in this round: the others come first.
        self._passed: set[str] = set()
        self._unsure = Unsure(ledger, self._lease_ns)
        self._resting = False

    def start(self) -> None:
        """Begin to look."""
        self._resting = False
        self._looking = asyncio.create_task(_repeated(self.look, self._every))

    def rest(self) -> None:
        """Take nothing from now on: others do. What was taken goes on."""
        self._resting = True
        if self._looking is not None:
            self._looking.cancel()

    async def close(self) -> None:
        """Take nothing any more; let what was taken end, but not for ever."""
        self.rest()
        if self._looking is None:
            return
        await _stopped(self._looking)
        self._looking = None
        if self._working:
            await asyncio.wait(self._tasks(), timeout=_GRACE)
        for task in self._tasks():
            await _stopped(task)

    async def sweep(self) -> None:
        """Look once, and wait until what was found is done."""
        await self.look()
        if self._working:
            await asyncio.wait(self._tasks())

    async def look(self) -> None:
        """Begin to look after what is lost, and ask again about what nobody knows."""
        await self._begin_lost()
        if len(self._passed) > _MOST_PASSED or (self._passed and self._free() > 0):
            # All others have had their turn: a new round begins with those that were passed over.
            self._passed.clear()
            await self._begin_lost()
        if self._free() > 0:
            for entry in await self._unsure.due():
                if self._free() > 0:
                    self._begin(entry, self._asked_again)

    async def _begin_lost(self) -> None:
        free = self._free()
        if free > 0:
            but = self._passed | self._working.keys()
            for entry in await self._ledger.lost(free, but=but, busy=self._busy()):
                self._begin(entry, self._recovered)

    def _free(self) -> int:
        slow_ns = clock.monotonic_ns() - _SLOW_NS
        return _AT_ONCE - sum(one.since_ns > slow_ns for one in self._working.values())

    def _busy(self) -> list[str]:
        """Tenants that have as much as one may have at the same time."""
        counted = Counter(one.tenant for one in self._working.values())
        return [tenant for tenant, count in counted.items() if count >= _AT_ONCE]

    def _tasks(self) -> "list[asyncio.Task[None]]":
        return [one.task for one in self._working.values()]

    def _begin(self, entry: Entry, work: Callable[[Entry], Coroutine[Any, Any, None]]) -> None:
        if entry.call_id in self._working or entry.tenant in self._busy():
            return
        task = asyncio.create_task(self._guarded(entry, work(entry)))
        self._working[entry.call_id] = Work(entry.tenant, clock.monotonic_ns(), task)
        task.add_done_callback(lambda _: self._working.pop(entry.call_id, None))

    async def _guarded(self, entry: Entry, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (StoreError, CallRefused) as error:
            # Nothing was concluded: a later look finds it as it is.
            self._passed.add(entry.call_id)
            log.info("call %s is looked after later (%s)", entry.call_id, error.code)
        except Exception as error:  # noqa: BLE001  one that cannot be read must not stop the others
            self._passed.add(entry.call_id)
            log.error(  # noqa: TRY400  a trace would show the row
                "call %s cannot be looked after (%s)", entry.call_id, type(error).__name__
            )

    async def _recovered(self, entry: Entry) -> None:
        if entry.state is State.COMPENSATING:
            await self._undo.resume(entry, stops=lambda: self._resting)
            return
        # Before it is claimed: where an engine is away, it is left to the next look.
        kept = None if self._queue is None else await self._queue.calls.find(*_names(entry))
        if kept is not None and kept.stage in QUEUED and _runs_again(entry):
            # A worker is to run it, and the queue brings it to one.
            self._passed.add(entry.call_id)
            return
        ready = await self._ready(entry) if kept is None else _NO_WORKER
        if self._resting:
            return
        begun = await self._ledger.take(entry)
        if begun.action is Action.REFUSE:
            # Another was faster, or its owner came back, which may be this very process.
            return
        try:
            await self._taken(begun, ready)
        finally:
            # Where its end could not be written, it is to be lost again.
            self._ledger.let_go(begun.entry)

    async def _taken(self, begun: Begun, ready: Ready) -> None:
        entry = begun.entry
        match begun.action:
            case Action.RUN | Action.AGAIN:
                await self._gone_on_with(entry, ready)
            case Action.PROBE:
                told = await self._probing.ask(entry)
                await self._journal.end(self._probing.ended(entry, told))
            case Action.PARK:
                log.warning(
                    "nobody saw how call %s of %s ended; an operator can settle it",
                    entry.call_id,
                    entry.tool,
                )
            case _:
                return

    async def _ready(self, entry: Entry) -> Ready:
        """What it needs to run again, as of today."""
        if not _runs_again(entry):
            return Ready(None, {})
        if entry.fence > _MOST_TRIES:
            return Ready(None, {}, "it was tried too often, and never ended")
        args = recalled.whole_args(entry)
        if args is None:
            return Ready(None, {}, "its arguments are not on record as they were")
        try:
            caller = recalled.same_caller(entry)
            grant = await self._decide(caller, entry.tool, args, recalled.turn_of(entry))
        except CallRefused as error:
            if error.retryable:
                raise
            return Ready(None, {}, f"it is not allowed any more ({error.code})")
        if grant.spec.fingerprint != entry.fingerprint:
            return Ready(None, {}, "its tool is not what it was")
        if (self._always or grant.needs_a_person) and not entry.approval:
            return Ready(None, {}, "it needs a person's approval now")
        if not grant.spec.input_schema.is_valid(args):
            return Ready(None, {}, "its arguments do not fit")
        return Ready(grant, args)

    async def _gone_on_with(self, entry: Entry, ready: Ready) -> None:
        if ready.grant is None:
            state = State.UNKNOWN if entry.tried else State.FAILED
            why = f"Nobody saw how it ended, and it was not run again: {ready.why}."
            await self._journal.end(failed(entry, state, "not_recovered", why))
            return
        if not await self._ledger.start(entry):
            return
        started = msgspec.structs.replace(entry, state=State.STARTED, tried=True, doubt=entry.tried)
        output = await self._resume(ready.grant, started, ready.args)
        log.info("call %s of %s was run again: %s", entry.call_id, entry.tool, output.status)

    async def _asked_again(self, entry: Entry) -> None:
        self._unsure.asked(entry)
        told = await self._probing.ask(entry)
        if told.happened is not None:
            await self._journal.end(self._probing.ended(entry, told))


def _names(entry: Entry) -> tuple[str, str]:
    return entry.tenant, entry.call_id


def _runs_again(entry: Entry) -> bool:
    return not entry.tried or entry.recovery in {Recovery.AGAIN, Recovery.KEYED}


async def renewing(ledger: Ledger, lease: float) -> None:
    """Keep alive the claims of what runs here, also while the house closes; for ever."""
    await _repeated(ledger.renew, _often(lease))


def _often(lease: float) -> float:
    return min(lease / 3, _SLOWEST)


async def _repeated(work: Callable[[], Awaitable[object]], every: float) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await work()
        except StoreError:
            # It is away; the next time finds what this one could not see.
            continue
        except Exception as error:  # noqa: BLE001  it must go on, whatever it met
            log.error("looking after calls failed (%s)", type(error).__name__)  # noqa: TRY400


async def _stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, ToolgateError):
        await task
