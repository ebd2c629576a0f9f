"""Looks after calls whose owner is gone; and keeps alive the claims of those that run here.

Each one is claimed first, under a fence of its own, and then run again, asked about, or parked as
unknown: as its tool allows. One that cannot be looked after stops none of the others.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from toolgate import clock
from toolgate.call import Grant, Output
from toolgate.errors import CallRefused, StoreError, ToolgateError
from toolgate.executor.aftercare import recalled
from toolgate.executor.aftercare.probing import Probing, failed
from toolgate.executor.aftercare.undo import Decide, Undo
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Journal
from toolgate.ledger.ledger import Ledger
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State

log = logging.getLogger("toolgate.recovery")
Resume = Callable[[Grant, Entry, dict[str, Any]], Awaitable[Output]]
_SLOWEST = 5.0
_AT_ONCE = 16
# A call that takes its process with it each time is not tried for ever.
_MOST_TRIES = 5
# How soon a probe that could not tell is asked again: at first, and after a while.
_ASK_AGAIN_NS = 60_000_000_000
_MOST_PATIENCE_NS = 3_600_000_000_000
# How long closing waits for what is being looked after.
_GRACE = 5.0


class Ready(NamedTuple):
    """What a call needs to be run again; or why it cannot be."""

    grant: Grant | None
    args: dict[str, Any]
    why: str = ""


class Recover:
    """The periodic look. `lease` is in seconds."""

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        *,
        decide: Decide,
        resume: Resume,
        probing: Probing,
        undo: Undo,
        lease: float,
    ) -> None:
        self._ledger = ledger
        self._journal = journal
        self._decide = decide
        self._resume = resume
        self._probing = probing
        self._undo = undo
        self._lease_ns = round(lease * 1e9)
        self._every = _often(lease)
        self._looking: asyncio.Task[None] | None = None
        self._working: dict[str, asyncio.Task[None]] = {}
        # By call: when a probe may be asked again, and after how long the next time.
        self._asked: dict[str, tuple[int, int]] = {}

    def start(self) -> None:
        """Begin to look."""
        self._looking = asyncio.create_task(_repeated(self.look, self._every))

    async def close(self) -> None:
        """Take nothing any more; let what was taken end, but not for ever."""
        if self._looking is None:
            return
        await _stopped(self._looking)
        self._looking = None
        if self._working:
            await asyncio.wait(self._working.values(), timeout=_GRACE)
        for task in list(self._working.values()):
            await _stopped(task)

    async def sweep(self) -> None:
        """Look once, and wait until what was found is done."""
        await self.look()
        if self._working:
            await asyncio.wait(self._working.values())

    async def look(self) -> None:
        """Begin to look after what is lost, and ask again about what nobody knows."""
        for entry in await self._ledger.lost(self._free()):
            self._begin(entry, self._recovered(entry))
        if self._free() > 0:
            for entry in await self._ledger.unsure(_AT_ONCE * 4):
                if self._free() > 0 and self._is_due(entry):
                    self._begin(entry, self._asked_again(entry))

    def _free(self) -> int:
        return _AT_ONCE - len(self._working)

    def _begin(self, entry: Entry, work: Coroutine[Any, Any, None]) -> None:
        if entry.call_id in self._working:
            work.close()
            return
        task = asyncio.create_task(self._guarded(entry, work))
        self._working[entry.call_id] = task
        task.add_done_callback(lambda _: self._working.pop(entry.call_id, None))

    async def _guarded(self, entry: Entry, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (StoreError, CallRefused) as error:
            # Nothing was concluded: the next look finds it as it is.
            log.info("call %s is looked after later (%s)", entry.call_id, error.code)
        except Exception as error:  # noqa: BLE001  one that cannot be read must not stop the others
            log.error(  # noqa: TRY400  a trace would show the row
                "call %s cannot be looked after (%s)", entry.call_id, type(error).__name__
            )

    async def _recovered(self, entry: Entry) -> None:
        if entry.state is State.COMPENSATING:
            await self._undo.resume(entry)
            return
        # Before it is claimed: where an engine is away, it is left to the next look.
        ready = await self._ready(entry)
        begun = await self._ledger.take(entry)
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
                # Another was faster, or its owner came back.
                return

    async def _ready(self, entry: Entry) -> Ready:
        """What it needs to run again, as of today."""
        if entry.tried and entry.recovery not in {Recovery.AGAIN, Recovery.KEYED}:
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
        if grant.needs_a_person and not entry.approval:
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
        started = msgspec.structs.replace(entry, state=State.STARTED, tried=True)
        output = await self._resume(ready.grant, started, ready.args)
        log.info("call %s of %s was run again: %s", entry.call_id, entry.tool, output.status)

    def _is_due(self, entry: Entry) -> bool:
        """Not at once: what is on its way when a call is given up can still arrive."""
        due_ns, _ = self._asked.get(entry.call_id, (entry.ended_ns + self._lease_ns, 0))
        return clock.unix_ns() >= due_ns

    async def _asked_again(self, entry: Entry) -> None:
        told = await self._probing.ask(entry)
        if told.happened is not None:
            self._asked.pop(entry.call_id, None)
            await self._journal.end(self._probing.ended(entry, told))
            return
        _, last_ns = self._asked.get(entry.call_id, (0, 0))
        wait_ns = min(max(2 * last_ns, _ASK_AGAIN_NS), _MOST_PATIENCE_NS)
        self._asked[entry.call_id] = (clock.unix_ns() + wait_ns, wait_ns)


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
