"""Claims and ends on PostgreSQL: one statement each, so that one round trip is one transaction."""

import asyncio
from functools import partial
from typing import Any

import msgspec

from toolgate import clock
from toolgate.crash import crash_here
from toolgate.ledger.claims import is_ended, kept_ns
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.ledger.owner import Owner
from toolgate.store.claiming import Terms, by_id, claim, started
from toolgate.store.database import Ran, Statements
from toolgate.store.ending import ending_values, guard_values, window_ns
from toolgate.store.rows import row_of
from toolgate.store.skew import Skew
from toolgate.store.statements import BEFORE, CLAIMS, ENDS
from toolgate.store.told import audit_values, outbox_values


class PostgresCalls:
    """The two writes around a side effect."""

    def __init__(self, database: Statements, owner: Owner, *, outbox: bool) -> None:
        self._database = database
        self._owner = owner
        self._outbox = outbox
        self._skew = Skew(database)
        # Claims whose caller went away while they were made.
        self._left: dict[str, asyncio.Task[Ran]] = {}

    async def begin(self, entry: Entry, *, may_start: bool, basis: Basis | None) -> Begun:
        """Who is cancelled meanwhile does not take the claim back: it is made, or it fails."""
        await self._skew.check()
        again = False
        if may_start and not entry.approval:
            new = started(entry, self._owner, 0)
            try:
                rows, again = await self._claimed(new, basis)
            except asyncio.CancelledError:
                # What was sent may still be done, after the end that the caller writes now. Sent
                # once more, it is done when that has an answer.
                claiming = asyncio.create_task(self._claimed(new, basis))
                self._left[entry.call_id] = claiming
                claiming.add_done_callback(partial(self._forget, entry.call_id))
                raise
            if rows:
                crash_here("CP4")
                lease_ns, started_ns = rows[0]
                new = msgspec.structs.replace(new, lease_ns=lease_ns, started_ns=started_ns)
                return Begun(new, Action.RUN)
        terms = Terms(self._owner, self._outbox, may_start, again, basis)
        return await self._database.write(
            lambda connection: claim(connection, entry, terms), tenant=entry.tenant
        )

    async def _claimed(self, new: Entry, basis: Basis | None) -> Ran:
        told = outbox_values(new, clock.unix_ns()) if self._outbox else None
        decided = None if basis is None else basis.revision
        parts = () if basis is None else basis.parts
        values = (*row_of(new), decided, parts, *(told or ()))
        return await self._database.run(CLAIMS[told is not None], values)

    async def end(self, entry: Entry, *, again: bool) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""
        left = self._left.get(entry.call_id)
        if left is not None:
            # Else the end could come before the beginning.
            await asyncio.wait([left])
        now = clock.unix_ns()
        values: list[Any] = [
            *ending_values(entry),
            kept_ns(entry, self._owner.ttl_ns),
            window_ns(entry),
            *guard_values(entry),
            BEFORE[entry.state],
            *audit_values(entry, now),
        ]
        if entry.charges:
            values += [[one for one, _ in entry.charges], [amount for _, amount in entry.charges]]
        told = outbox_values(entry, now) if self._outbox else None
        if told is not None:
            values += told
        crash_here("CP7")
        rows, sent_again = await self._database.run(
            ENDS[told is not None, bool(entry.charges)], values
        )
        if rows:
            return Ended(accepted=True, wanted_by=rows[0][0])
        return await self._ended_before(entry) if again or sent_again else Ended(accepted=False)

    async def _ended_before(self, entry: Entry) -> Ended:
        """The answer to the first attempt was lost: nobody else has this fence."""
        found = await self._database.read(
            lambda connection: by_id(connection, entry.tenant, entry.call_id), tenant=entry.tenant
        )
        if found is None or not is_ended(found, entry):
            return Ended(accepted=False)
        return Ended(accepted=True, wanted_by=found.wanted_by)

    def _forget(self, call_id: str, claiming: "asyncio.Task[Ran]") -> None:
        self._left.pop(call_id, None)
        if not claiming.cancelled():
            # Nobody is there to hear of it; the row, if there is one, is found when its lease ends.
            claiming.exception()
