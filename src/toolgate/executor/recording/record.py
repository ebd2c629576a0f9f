"""Every call is on record; a side effect before it happens, and once."""

import asyncio

import msgspec

from toolgate import clock
from toolgate.call import Call, Failure, Output, Status
from toolgate.crash import crash_here
from toolgate.errors import ApprovalPending, CallRefused, ExecutionFailed, StoreUnavailable
from toolgate.executor.answer import answer
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.failure import execution_failed
from toolgate.executor.outcome import comes_again, mark_begun
from toolgate.executor.recording import entries
from toolgate.executor.recording.ends import Ends, Listeners, Write, patience_of
from toolgate.executor.recording.replay import conflict, in_progress, replayed
from toolgate.executor.recording.twins import Twins
from toolgate.executor.resilience.deadline import is_overdue, out_of_time
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended, Journal
from toolgate.ledger.machine import Action
from toolgate.ledger.read import read_of
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect
from toolgate.spec.redactor import PLAIN, Redactor


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
        self._redactor = redactor
        self._ends = Ends(journal, listeners)
        # Calls that came as far as their tool.
        self._reached: set[str] = set()

    def reach(self, call_id: str) -> bool:
        """The tool itself is about to run; whether that is new."""
        is_new = call_id not in self._reached
        self._reached.add(call_id)
        return is_new

    def unreach(self, call_id: str) -> None:
        """Its provider says that it did not begin."""
        self._reached.discard(call_id)

    def holds(self, call_id: str) -> bool:
        """Whether nobody else can have taken a call that was begun here."""
        return self._journal.holds(call_id)

    def link(self, inner: Handler) -> Handler:
        """The effect decides whether the record goes before the call or behind it."""
        journal, recorded, ahead = self._journal, self._recorded, self._ahead(inner)

        async def run(call: Call) -> Output:
            # What a person agreed to is used up before it runs, whatever its effect; and what may
            # not run without them is answered from the record.
            if call.grant.spec.effect is not Effect.PURE or call.approval or not call.may_start:
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
                journal.note(read_of(call, args, took_ns))
                if recorded is not None:
                    recorded.add(call.id)
            return output

        return run

    async def drain(self, patience: float) -> None:
        """Until every outcome is written, or so long."""
        await self._ends.drain(patience)

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
            except BaseException as error:
                self._known(asked_id)
                if isinstance(error, asyncio.CancelledError) and call.id in self._reached:
                    mark_begun(error, asked_id)
                raise
            finally:
                self._over(entry)
            self._known(asked_id)
            return output

        return run

    async def resumed(self, inner: Handler, call: Call, entry: Entry) -> Output:
        """Run what somebody else had begun, and whose intent is on record again."""
        self._twins.owned(entry)
        try:
            return await self._owned(inner, call, entry)
        finally:
            self._over(entry)

    def _over(self, entry: Entry) -> None:
        self._reached.discard(entry.call_id)
        self._twins.ended(entry)

    async def _owned(self, inner: Handler, call: Call, entry: Entry) -> Output:
        """It is ours: run it, and say how it ended."""
        if self._ends.is_heard(call):
            try:
                await self._ends.tell(call, entry)
            except asyncio.CancelledError as error:
                await self._ends.write(call, _untried(entry, call, error), patience_of(error))
                if is_overdue(error):
                    raise out_of_time(call) from None
                raise
        try:
            output = await inner(call)
        except asyncio.CancelledError as error:
            close = entries.ended if call.id in self._reached else _untried
            await self._ends.write(call, close(entry, call, error), patience_of(error))
            if is_overdue(error) and close is _untried:
                raise out_of_time(call) from None
            raise
        except Exception as error:
            failure = self._failure(call, error)
            if comes_again(call, failure):
                crash_here("CP19")
                await self._ends.write(call, entries.released(entry, call, failure))
                crash_here("CP20")
                raise
            told = answer(call, failure)
            await self._ends.write(call, entries.failed(entry, call, failure, told, self._redactor))
            if failure is error:
                raise
            raise failure from error
        except BaseException as error:
            # Whoever ran the call has let go of it: nothing can be waited for any more.
            self._ends.leave(entries.ended(entry, call, error))
            raise
        crash_here("CP11" if call.asked.undo_of else "CP6")
        if output.call_id != call.id:
            await self._ends.write(call, entries.answered(entry, call))
            return output
        ended = await self._ends.write(call, entries.succeeded(entry, call, output, self._redactor))
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
            closed = _untried(msgspec.structs.replace(intent, fence=1), call, error)
            # One from a queue is brought again: it has not come to its end.
            is_new = not call.asked.delivered
            write = Write(self._journal, call, closed, self._twins.left(call), is_new=is_new)
            ended = await self._ends.late(write, patience_of(error))
            if ended is None or ended.accepted:
                # It is, or will be, when its claim has an answer.
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

    def _failure(self, call: Call, error: Exception) -> Exception:
        """A refusal says that nothing happened, which nobody behind the tool can say any more."""
        if isinstance(error, CallRefused) and call.id in self._reached:
            return execution_failed(call, error)
        return error


def _untried(entry: Entry, call: Call, error: BaseException) -> Entry:
    """The entry of a call whose caller went away before anything was tried."""
    close = entries.released if call.asked.delivered else entries.untried
    return close(entry, call, error)


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
