"""The ledger in tables: every step is the machine's, on a row that nobody else is at."""

from collections.abc import Callable, Collection, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.ledger.charging import later
from toolgate.ledger.claims import stepped, taken, undoing
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.ledger import Which, no_such_cursor, scopes
from toolgate.ledger.machine import Action, Event, Settle, Start, Undone
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import OPEN, State
from toolgate.store import audit
from toolgate.store.budgets import charge
from toolgate.store.claiming import by_id, write
from toolgate.store.database import HOUSE, Database, Statements
from toolgate.store.hold import Hold
from toolgate.store.lost import lost_rows, unsure_rows
from toolgate.store.moment import now_ns
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import entries_of
from toolgate.store.skew import Skew
from toolgate.store.text import storable
from toolgate.store.told import tell
from toolgate.tenancy.audit import ENDED

_OPEN = [state.value for state in sorted(OPEN)]
# Of the ids in one statement; servers have a bound for it.
_TOGETHER = 10_000
# What cannot be read stays where it is, and is passed over.
_UNREADABLE = 1_000
_OURS = frozenset({Action.RUN, Action.AGAIN, Action.PROBE, Action.COMPENSATE})


class TableLedger:
    """The ledger port over a database. `owner` is the journal's: it renews what both hold."""

    def __init__(
        self, database: Database, owner: Owner, *, outbox: bool = False, hold: Hold | None = None
    ) -> None:
        self._database = database
        self._owner = owner
        self._outbox = outbox
        # Of a file the clock is this machine's own.
        self._skew = Skew(database) if isinstance(database, Statements) else None
        self._hold = hold or Hold()

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry with a row of its own."""
        return await self._database.read(
            lambda connection: by_id(connection, tenant, call_id), tenant=tenant
        )

    async def search(self, which: Which) -> Sequence[Entry]:
        """Those that began last come first; the cursor is a call's id."""
        if which.limit < 1:
            return []
        return await self._database.read(
            lambda connection: _found(connection, which), tenant=which.tenant
        )

    async def lost(
        self, limit: int, *, but: Collection[str] = (), busy: Collection[str] = ()
    ) -> Sequence[Entry]:
        """Tenants by turns; of each, whose lease ended first."""
        if self._hold.why:
            return []

        def work(connection: Connection) -> list[Entry]:
            rows = connection.execute(
                lost_rows(now_ns(connection), but, busy).limit(max(limit, 0) + _UNREADABLE)
            )
            return entries_of(tuple(row) for row in rows)[: max(limit, 0)]

        return await self._database.read(work, tenant=HOUSE)

    async def unsure(self, limit: int, *, behind: Entry | None = None) -> Sequence[Entry]:
        """Of those whose end was seen last, that is seen to be missing."""
        if limit < 1 or self._hold.why:
            return []
        asked = unsure_rows(behind).limit(limit)
        return await self._database.read(
            lambda connection: entries_of(tuple(row) for row in connection.execute(asked)),
            tenant=HOUSE,
        )

    async def take(self, entry: Entry) -> Begun:
        """By the row as it is now: another may have been quicker."""
        self._hold.check()

        def work(connection: Connection) -> Begun:
            self._hold.check()
            found = by_id(connection, entry.tenant, entry.call_id, lock=True)
            if found is None or found.fence != entry.fence or self._owner.is_at(found):
                return Begun(found or entry, Action.REFUSE)
            now = now_ns(connection)
            begun = taken(
                found, now_ns=now, lease_ns=now + self._owner.lease_ns, owner=self._owner.name
            )
            change = ENDED if begun.action is Action.PARK else "call.taken"
            done = self._put(connection, found, begun.entry, now, change)
            return begun if done else _not(found)

        return await self._claimed(work, entry)

    async def start(self, entry: Entry) -> bool:
        """From here on it may have happened."""
        return await self._step(entry, Start(entry.fence), change="call.started")

    async def undo(self, entry: Entry, *, who: str = "", why: str = "") -> Begun:
        """By the row as it is now, and within its time."""
        self._hold.check()

        def work(connection: Connection) -> Begun:
            self._hold.check()
            found = by_id(connection, entry.tenant, entry.call_id, lock=True)
            if found is None:
                return _not(entry)
            now = now_ns(connection)
            begun = undoing(
                found,
                now_ns=self._owner.time_for(found, now),
                lease_ns=now + self._owner.lease_ns,
                owner=self._owner.name,
            )
            done = self._put(connection, found, begun.entry, now, "call.undo", who, why)
            return begun if done else _not(found)

        return await self._claimed(work, entry)

    async def undone(self, entry: Entry, *, done: bool, why: str = "") -> bool:
        """What failed can be tried again."""
        self._owner.running.discard(entry.call_id)
        event = Undone(fence=entry.fence, done=done)
        return await self._step(entry, event, change=ENDED, why=why)

    async def settle(self, entry: Entry, *, happened: bool, who: str, why: str) -> bool:
        """Whoever knows it says so under a name, with a reason."""
        return await self._step(entry, Settle(happened), change="call.settled", who=who, why=why)

    async def note(
        self, entry: Entry, change: str, details: Mapping[str, str], *, who: str, why: str
    ) -> None:
        """The row stays as it is; the audit says who looked after it."""

        def work(connection: Connection) -> None:
            at_ns = now_ns(connection)
            audit.note(connection, entry, at_ns, change=change, details=details, who=who, why=why)

        await self._database.write(work, tenant=entry.tenant)

    def let_go(self, entry: Entry) -> None:
        """It is not at it any more, whether it has said so or not."""
        self._owner.running.discard(entry.call_id)

    async def renew(self) -> int:
        """One statement for all that run here."""
        running = sorted(self._owner.running)
        asked_ns = clock.monotonic_ns()

        def work(connection: Connection) -> list[str]:
            now = now_ns(connection)
            renewed: list[str] = []
            for first in range(0, len(running), _TOGETHER):
                renewed += connection.execute(
                    log.update()
                    .where(
                        log.c.call_id.in_(running[first : first + _TOGETHER]),
                        log.c.owner == self._owner.name,
                        log.c.state.in_(_OPEN),
                        log.c.lease_ns.is_not(None),
                    )
                    .values(lease_ns=now + self._owner.lease_ns)
                    .returning(log.c.call_id)
                ).scalars()
            return renewed

        renewed = await self._database.write(work, tenant=HOUSE) if running else []
        for call_id in renewed:
            # What has ended meanwhile does not come back.
            if call_id in self._owner.running:
                self._owner.running.add(call_id, asked_ns)
        return len(renewed)

    async def _step(self, entry: Entry, event: Event, **told: str) -> bool:
        """What the event makes of the row; `why` it failed is kept with it."""

        def work(connection: Connection) -> bool:
            found = by_id(connection, entry.tenant, entry.call_id, lock=True)
            if found is None:
                return False
            now = now_ns(connection)
            after = stepped(
                found, event, now_ns=now, ttl_ns=self._owner.ttl_ns, why=told.get("why", "")
            )
            return after is not None and self._put(connection, found, after, now, **told)

        return await self._database.write(work, tenant=entry.tenant)

    def _put(
        self,
        connection: Connection,
        found: Entry,
        entry: Entry,
        now: int,
        change: str,
        who: str = "",
        why: str = "",
    ) -> bool:
        """Write it and tell of it; whether the row was still as it was found."""
        if entry == found:
            return True
        if not write(connection, found, entry):
            return False
        tell(connection, entry, now, outbox=self._outbox, change=change, who=who, why=why)
        if State.UNKNOWN in {entry.state, found.state}:
            charge(connection, later(found, entry.state))
        return True

    async def _claimed(self, work: Callable[[Connection], Begun], entry: Entry) -> Begun:
        """Ours from now on, if it is; by no clock that is far from the store's."""
        if self._skew is not None:
            await self._skew.check()
        asked_ns = clock.monotonic_ns()
        begun = await self._database.write(work, tenant=entry.tenant)
        if begun.action in _OURS:
            self._owner.running.add(begun.entry.call_id, asked_ns)
        return begun


def _not(entry: Entry) -> Begun:
    return Begun(entry, Action.REFUSE)


def _found(connection: Connection, which: Which) -> list[Entry]:
    asked = sa.select(log).where(log.c.tenant_id == storable(which.tenant))
    for column, wanted in (
        (log.c.turn_group, which.turn_group),
        (log.c.chain_id, which.chain),
        (log.c.tool_name, which.tool),
        (log.c.agent_id, which.agent),
        (log.c.user_id, which.user),
    ):
        if wanted:
            asked = asked.where(column == storable(wanted))
    for index, wanted in (("turn_group <> ''", which.turn_group), ("chain_id <> ''", which.chain)):
        if wanted:
            # Nothing new, but what the index says of itself: without it SQLite leaves it alone.
            asked = asked.where(sa.text(index))
    if which.of:
        of = storable(which.of)
        asked = asked.where((log.c.again_of == of) | (log.c.undo_of == of))
    if which.scope:
        asked = asked.where(log.c.once_scope.in_([storable(one) for one in scopes(which.scope)]))
    if which.states:
        asked = asked.where(log.c.state.in_([state.value for state in sorted(which.states)]))
    if which.since_ns:
        asked = asked.where(log.c.created_ns >= which.since_ns)
    if which.before:
        asked = asked.where(_older(connection, which))
    rows = connection.execute(
        asked.order_by(log.c.created_ns.desc(), log.c.call_id.desc()).limit(which.limit)
    )
    return entries_of(tuple(row) for row in rows)


def _older(connection: Connection, which: Which) -> sa.ColumnElement[bool]:
    asked = sa.select(log.c.created_ns).where(
        log.c.call_id == storable(which.before), log.c.tenant_id == storable(which.tenant)
    )
    if which.scope:
        # Another one's call looks as if it were not there.
        asked = asked.where(log.c.once_scope.in_([storable(one) for one in scopes(which.scope)]))
    began = connection.execute(asked).scalar_one_or_none()
    if began is None:
        raise no_such_cursor(which)
    return (log.c.created_ns < began) | (
        (log.c.created_ns == began) & (log.c.call_id < storable(which.before))
    )
