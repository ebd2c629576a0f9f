"""Every call is on record; a side effect before it happens, and once."""

import asyncio
import logging
from typing import Protocol

import msgspec

from toolgate import clock
from toolgate.call import Call, Failure, Output, Status
from toolgate.crash import crash_here
from toolgate.errors import ApprovalPending, ExecutionFailed, StoreUnavailable
from toolgate.executor.answer import answer
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.limits import costs
from toolgate.executor.recording import entries
from toolgate.executor.recording.late import Late
from toolgate.executor.recording.replay import conflict, in_progress, replayed
from toolgate.executor.recording.twins import Twins
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended, Journal
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import PLAIN, Redactor

log = logging.getLogger("toolgate.journal")
# How long an outcome holds up a caller who has stopped waiting for it.
_PATIENCE = 1.0
_MOMENT = 0.15


class Listeners(Protocol):
    """Whoever wants to hear of side effects."""

    def hear(self, call: Call) -> bool:
        """Whether anybody listens to this one."""
        ...

    async def tell(self, call: Call, entry: Entry) -> None:
        """It is in this state now."""
        ...


class Record(Extension):
    """Writes the intent, runs, writes the outcome. A pure call is written once, afterwards.

    `listeners` hear of each side effect: when its intent is on record, and when its outcome is.
    `recorded` is told the ids of calls that are on record with their end.
    """

    priority = 400

    def __init__(
        self,
        journal: Journal,
        *,
        wait: float = 0.0,
        listeners: Listeners | None = None,
        redactor: Redactor = PLAIN,
        recorded: set[str] | None = None,
        guarded: bool = False,
    ) -> None:
        """`guarded`: a call is begun only in the world that it was decided on."""
        self._journal = journal
        self._recorded = recorded
        self._twins = Twins(journal, wait, guarded=guarded)
        self._listeners = listeners
        self._redactor = redactor
        self._late = Late()

    def holds(self, call_id: str) -> bool:
        """Whether nobody else can have taken a call that was begun here."""
        return self._journal.holds(call_id)

    def link(self, inner: Handler) -> Handler:
        """The effect decides whether the record goes before the call or behind it."""
        journal, recorded, ahead = self._journal, self._recorded, self._ahead(inner)

        async def run(call: Call) -> Output:
            # What a person agreed to is used up before it runs, whatever its effect.
            if call.grant.spec.effect is not Effect.PURE or call.approval:
                return await ahead(call)
            if journal.crowded():
                await journal.drain()
            args = entries.written(call)
            try:
                output = await inner(call)
            except (Exception, asyncio.CancelledError) as error:
                begun = entries.plain_entry(call, args, State.STARTED)
                journal.note(entries.ended(begun, call, error))
                self._known(call.id)
                raise
            if output.call_id != call.id:
                begun = entries.plain_entry(call, args, State.STARTED)
                journal.note(entries.answered(begun, call))
                self._known(call.id)
            else:
                took_ns = clock.monotonic_ns() - call.began_ns
                journal.note(entries.plain_entry(call, args, State.SUCCEEDED, took_ns))
                if recorded is not None:
                    recorded.add(call.id)
            return output

        return run

    async def drain(self, patience: float) -> None:
        """Until every outcome is written, or so long."""
        await self._late.drain(patience)

    def _ahead(self, inner: Handler) -> Handler:
        async def run(call: Call) -> Output:
            call, raw = entries.settled(call)
            begun = await self._begun(call, entries.intent(call, raw, self._redactor))
            if begun.action not in {Action.RUN, Action.AGAIN}:
                return _answered(call, begun)
            crash_here("CP5")
            entry, asked_id = begun.entry, call.came_as or call.id
            call = msgspec.structs.replace(
                call, id=entry.call_id, downstream_key=entries.downstream_key(entry)
            )
            try:
                output = await self._owned(inner, call, entry)
            except BaseException:
                self._known(asked_id)
                raise
            finally:
                self._twins.ended(entry)
            self._known(asked_id)
            return output

        return run

    async def resumed(self, inner: Handler, call: Call, entry: Entry) -> Output:
        """Run what somebody else had begun, and whose intent is on record again."""
        self._twins.owned(entry)
        try:
            return await self._owned(inner, call, entry)
        finally:
            self._twins.ended(entry)

    async def _owned(self, inner: Handler, call: Call, entry: Entry) -> Output:
        """It is ours: run it, and say how it ended."""
        if self._is_heard(call):
            try:
                await self._told(call, entry)
            except asyncio.CancelledError as error:
                await self._end(call, entries.untried(entry, call, error), _PATIENCE)
                raise
        try:
            output = await inner(call)
        except asyncio.CancelledError as error:
            await self._end(call, entries.ended(entry, call, error), _PATIENCE)
            raise
        except Exception as error:
            told = answer(call, error)
            await self._end(call, entries.failed(entry, call, error, told, self._redactor))
            raise
        except BaseException as error:
            # Whoever ran the call has let go of it: nothing can be waited for any more.
            self._late.start(self._journal.end(entries.ended(entry, call, error)))
            raise
        crash_here("CP11" if call.asked.undo_of else "CP6")
        if output.call_id != call.id:
            await self._end(call, entries.answered(entry, call))
            return output
        ended = await self._end(call, entries.succeeded(entry, call, output, self._redactor))
        crash_here("CP9")
        if ended is None:
            raise ExecutionFailed(
                f"{call.spec.name!r} ran, but its outcome could not be put on record. "
                "Check what it did before you call it again."
            )
        return _delivered(call, output, ended)

    async def _begun(self, call: Call, intent: Entry) -> Begun:
        """Claim it, waiting for a twin that runs already as long as the caller likes."""
        try:
            return await self._twins.begin(call, intent)
        except asyncio.CancelledError as error:
            # The intent may be on record, but nothing was tried.
            closed = entries.untried(msgspec.structs.replace(intent, fence=1), call, error)
            ended = await self._end(call, closed, _PATIENCE, self._twins.left(call))
            if ended is None or ended.accepted:
                self._known(call.came_as or call.id)
            if is_overdue(error):
                raise StoreUnavailable(
                    f"The store did not take the record of {call.spec.name!r} in time, so "
                    "nothing ran. Try again when it is back."
                ) from None
            raise

    def _known(self, call_id: str) -> None:
        if self._recorded is not None:
            self._recorded.add(call_id)

    async def _end(
        self,
        call: Call,
        entry: Entry,
        patience: float | None = None,
        claiming: "asyncio.Task[Begun] | None" = None,
    ) -> Ended | None:
        """Write the outcome, also when the caller has gone away; `None` if that failed.

        `claiming`: it may be going on under the id that it waited by.
        """
        costs.take(call.charges)
        if patience is not None:
            return await self._end_late(_Write(self._journal, call, entry, claiming), patience)
        try:
            ended = await self._journal.end(entry)
        except asyncio.CancelledError as error:
            # What was sent may be done or not, so it is sent once more.
            write = _Write(self._journal, call, entry, again=True)
            if not is_overdue(error):
                self._late.start(write.done())
                raise
            # Its time is over, but how it ended is known: that is worth a moment.
            ended = await self._end_late(write, _MOMENT)
            if ended is None:
                raise
            return ended
        except Exception as error:  # noqa: BLE001  the store's trouble is not the tool's
            costs.settle(call.charges, entry.charges)
            _not_on_record(entry, error)
            return None
        costs.settle(call.charges, entry.charges)
        if ended.accepted and self._is_heard(call):
            await self._told(call, entry)
        return ended

    async def _end_late(self, write: "_Write", patience: float) -> Ended | None:
        """The same, behind whoever does not wait any longer than that."""
        error = await self._late.finish(write.done(), patience)
        if error is not None:
            _not_on_record(write.entry, error)
            return None
        if write.ended is not None and write.ended.accepted:
            await self._told(write.of, write.entry)
        return write.ended

    def _is_heard(self, call: Call) -> bool:
        return self._listeners is not None and self._listeners.hear(call)

    async def _told(self, call: Call, entry: Entry) -> None:
        if self._listeners is not None:
            await self._listeners.tell(call, entry)


class _Write:
    """An end that is written also behind a caller who has gone away."""

    def __init__(
        self,
        journal: Journal,
        call: Call,
        entry: Entry,
        claiming: "asyncio.Task[Begun] | None" = None,
        *,
        again: bool = False,
    ) -> None:
        self.of, self.entry = call, entry
        self.ended: Ended | None = None
        self._journal, self._claiming, self._again = journal, claiming, again

    async def done(self) -> None:
        try:
            if self._claiming is not None:
                self.entry = _as_begun(await self._claiming, self.entry)
            self.ended = await self._journal.end(self.entry, again=self._again)
        finally:
            # Where it could not be written, whoever finds the call charges it.
            costs.settle(self.of.charges, self.entry.charges)


def _not_on_record(entry: Entry, error: Exception) -> None:
    """The intent stays open, which nobody can take for a call that did not happen."""
    log.error("the outcome of call %s is not on record (%s)", entry.call_id, type(error).__name__)


def _as_begun(begun: Begun, closed: Entry) -> Entry:
    """The end of a claim whose caller went away, as that of the call which it began."""
    if begun.action not in {Action.RUN, Action.AGAIN}:
        return closed
    return msgspec.structs.replace(
        begun.entry,
        state=closed.state,
        error_code=closed.error_code,
        error_message=closed.error_message,
        duration_ns=closed.duration_ns,
        charges=closed.charges,
    )


def _answered(call: Call, begun: Begun) -> Output:
    """What is said where this call is not the one that runs."""
    match begun.action:
        case Action.REPLAY | Action.PARK:
            return replayed(begun.entry)
        case Action.CONFLICT:
            raise conflict(begun.entry, call.spec)
        case Action.WAIT:
            raise in_progress(begun.entry)
        case _:
            raise ApprovalPending(
                f"{call.spec.name!r} needs a person's approval, and the one there was is used up "
                "or has expired. Nothing ran: call again to ask for another."
            )


def _delivered(call: Call, output: Output, ended: Ended) -> Output:
    """The result, to whom it still belongs."""
    if not ended.accepted:
        told = (
            f"{call.spec.name!r} ran here, but took so long to be heard of that the call was "
            "given up as lost. What is on record stands: check before you call it again."
        )
        return _instead(output, "unknown", "lease_lost", told)
    turn_id = "" if call.turn is None else call.turn.id
    if ended.wanted_by and ended.wanted_by != turn_id:
        told = f"A later turn took this one's place; it receives the result of {call.spec.name!r}."
        return _instead(output, "superseded", "superseded", told)
    return output


def _instead(output: Output, status: Status, code: str, message: str) -> Output:
    return msgspec.structs.replace(
        output, status=status, data=None, error=Failure(code=code, message=message)
    )
