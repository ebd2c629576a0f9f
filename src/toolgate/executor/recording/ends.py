"""How calls ended, put on record also when whoever called has gone away, and told to listeners."""

import asyncio
import logging
from typing import Protocol

import msgspec

from toolgate.call import Call
from toolgate.executor.limits import costs
from toolgate.executor.recording.late import Late
from toolgate.executor.resilience.deadline import is_overdue
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended, Journal
from toolgate.ledger.machine import Action

log = logging.getLogger("toolgate.journal")
# How long an outcome holds up a caller who has stopped waiting for it, and one whose time is over.
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


class Ends:
    """Writes ends. What is still to be written when its caller goes is held here until it is."""

    def __init__(self, journal: Journal, listeners: Listeners | None) -> None:
        self._journal = journal
        self._listeners = listeners
        self._late = Late()

    async def drain(self, patience: float) -> None:
        """Until every one is written, or so long."""
        await self._late.drain(patience)

    def leave(self, entry: Entry) -> None:
        """Behind somebody who cannot wait at all."""
        self._late.start(self._journal.end(entry))

    async def write(self, call: Call, entry: Entry, patience: float | None = None) -> Ended | None:
        """Write the outcome, also when the caller has gone away; `None` if that failed.

        `patience`: how long to wait for it, where the caller is gone already.
        """
        if patience is not None:
            return await self.late(Write(self._journal, call, entry), patience)
        costs.take(call.charges)
        try:
            ended = await self._journal.end(entry)
        except asyncio.CancelledError as error:
            # What was sent may be done or not, so it is sent once more.
            again = Write(self._journal, call, entry, again=True)
            if not is_overdue(error):
                self._late.start(self._told(again))
                raise
            # Its time is over, but how it ended is known: that is worth a moment.
            ended = await self.late(again, _MOMENT)
            if ended is None:
                raise
            return ended
        except Exception as error:  # noqa: BLE001  the store's trouble is not the tool's
            costs.settle(call.charges, entry.charges)
            _not_on_record(entry, error)
            return None
        costs.settle(call.charges, entry.charges)
        if ended.accepted and self.is_heard(call):
            try:
                await self.tell(call, entry)
            except asyncio.CancelledError as error:
                # It is done and on record; a listener's time is not the caller's.
                if not is_overdue(error):
                    raise
        return ended

    async def late(self, write: "Write", patience: float) -> Ended | None:
        """The same, behind whoever does not wait any longer than that."""
        costs.take(write.of.charges)
        error = await self._late.finish(self._told(write), patience)
        if error is not None:
            write.is_late = True
            _not_on_record(write.entry, error)
            return None
        return write.ended

    async def _told(self, write: "Write") -> None:
        """On record, however late; then whoever listens hears of it, in their own time."""
        await write.done()
        if write.ended is not None and write.ended.accepted and self.is_heard(write.of):
            self._late.start(self.tell(write.of, write.entry))

    def is_heard(self, call: Call) -> bool:
        """Whether anybody listens."""
        return self._listeners is not None and self._listeners.hear(call)

    async def tell(self, call: Call, entry: Entry) -> None:
        """It is in this state now."""
        if self._listeners is not None:
            await self._listeners.tell(call, entry)


class Write:
    """An end that is written also behind a caller who has gone away.

    `claiming`: says what it began, which may be nothing: then another's call is not its to end.
    `is_new`: its claim may not have been made, and then it is noted as what did not happen.
    """

    def __init__(
        self,
        journal: Journal,
        call: Call,
        entry: Entry,
        claiming: "asyncio.Future[Begun] | None" = None,
        *,
        again: bool = False,
        is_new: bool = False,
    ) -> None:
        self.of, self.entry = call, entry
        self.ended: Ended | None = None
        # Whether nobody waits any more who could note it.
        self.is_late = False
        self._journal, self._claiming, self._again, self._is_new = journal, claiming, again, is_new

    async def done(self) -> None:
        """Until it is on record."""
        try:
            self.ended = await self._written()
            if self._is_new and self.is_late and not self.ended.accepted:
                self._journal.note(self.entry)
        finally:
            # Where it could not be written, whoever finds the call charges it.
            costs.settle(self.of.charges, self.entry.charges)

    async def _written(self) -> Ended:
        if self._claiming is not None:
            begun = await self._claiming
            if begun.action not in {Action.RUN, Action.AGAIN}:
                return Ended(accepted=False)
            self.entry = _as_begun(begun, self.entry)
        return await self._journal.end(self.entry, again=self._again)


def patience_of(error: BaseException) -> float:
    """Whoever was promised an answer by now waits no longer than a moment."""
    return _MOMENT if is_overdue(error) else _PATIENCE


def _not_on_record(entry: Entry, error: Exception) -> None:
    """The intent stays open, which nobody can take for a call that did not happen."""
    log.error("the outcome of call %s is not on record (%s)", entry.call_id, type(error).__name__)


def _as_begun(begun: Begun, closed: Entry) -> Entry:
    """The end of a claim whose caller went away, as that of the call which it began."""
    return msgspec.structs.replace(
        begun.entry,
        state=closed.state,
        error_code=closed.error_code,
        error_message=closed.error_message,
        duration_ns=closed.duration_ns,
        charges=closed.charges,
    )
