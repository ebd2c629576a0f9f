"""The journal in tables. Intents wait for the disk; finished pure calls are written behind.

A side effect has a row of its own in `tool_execution_log`. Pure calls share one (`store.pages`), at
a tenth of the cost.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.ledger.claims import Why
from toolgate.ledger.entry import Entry, Whose
from toolgate.ledger.journal import Basis, Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.ledger.owner import Owner
from toolgate.ledger.read import Read
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.store import pages
from toolgate.store.behind import Behind
from toolgate.store.calls_sqlite import SqliteCalls
from toolgate.store.claiming import answering
from toolgate.store.database import HOUSE, Database, Statements
from toolgate.store.hold import Hold
from toolgate.store.outage import closed
from toolgate.store.records import tool_execution_log as log
from toolgate.store.releasing import give_up, release
from toolgate.store.rows import COLUMNS, entries_of, entry_of
from toolgate.store.text import storable

if TYPE_CHECKING:
    from toolgate.store.calls_postgres import PostgresCalls

_CROWD = 10_000
# Larger arguments are digested at once: a crowd of them would fill the memory.
_SMALL = 4_096
# So many side effects of a tenant are looked through for those of one agent.
_MOST_ROWS = 100_000
_OURS = frozenset({Action.RUN, Action.AGAIN})
_FIND = (
    f"SELECT {', '.join(COLUMNS)} FROM tool_execution_log "  # noqa: S608  names of our own
    # So that no other index but that of the ids comes into question, also of a table still empty.
    "WHERE call_id = $1 AND tenant_id || '' = $2"
)

_IS_TAKEN = (
    "SELECT 1 FROM tool_execution_log WHERE tenant_id = $1 AND once_scope = $2 AND once_key = $3"
)


class TableJournal:
    """The journal port over a database. `lease` and `ttl` are seconds, of an owner and of a key.

    `outbox`: events are put on record with what they tell of.
    """

    def __init__(
        self,
        database: Database,
        *,
        lease: float = 15.0,
        ttl: float = 86_400.0,
        outbox: bool = False,
        hold: Hold | None = None,
    ) -> None:
        self._database = database
        self.owner = Owner(lease=lease, ttl=ttl)
        self._outbox = outbox
        self._hold = hold or Hold()
        self._calls = _calls(database, self.owner, self._hold, outbox=outbox)
        # Entries that cannot be written still wait; once there are too many, calls are refused.
        self._behind = Behind[Entry | Read]("journal", self._write)

    def start(self) -> None:
        """Begin to write behind."""
        self._behind.start()

    async def close(self) -> None:
        """Write what waits, then stop."""
        await self._behind.close()

    async def begin(
        self, entry: Entry, *, may_start: bool = True, basis: Basis | None = None
    ) -> Begun:
        """One transaction: the claim and the intent, or what is there already."""
        self._hold.check()
        asked_ns = clock.monotonic_ns()
        begun = await self._calls.begin(entry, may_start=may_start, basis=basis)
        if begun.action in _OURS:
            self.owner.running.add(begun.entry.call_id, asked_ns)
        return begun

    async def answering(self, entry: Entry, *, may_start: bool = True) -> Entry | None:
        """Asked of every queued call with a key, which nearly always is new: one short question."""
        if not entry.key:
            return None
        tenant = storable(entry.tenant)
        place = (tenant, storable(entry.scope), storable(entry.key))
        if not await self._database.ask(_IS_TAKEN, place, tenant=tenant):
            return None
        return await self._database.read(
            lambda connection: answering(connection, entry, self.owner, may_start=may_start),
            tenant=tenant,
        )

    def holds(self, call_id: str) -> bool:
        """By what this process was last told of its lease."""
        return self.owner.running.holds(call_id)

    async def end(self, entry: Entry, *, again: bool = False) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""
        # Also where this fails: a lease that nobody prolongs shows that its call is lost.
        self.owner.running.discard(entry.call_id)
        if entry.state is not State.RELEASED:
            return await self._calls.end(entry, again=again)
        return await self._database.write(
            lambda connection: release(connection, entry, again=again, outbox=self._outbox),
            tenant=entry.tenant,
        )

    async def give_up(self, entry: Entry) -> Entry:
        """By the row as it is now; most have none."""
        tenant, call_id = entry.tenant, entry.call_id
        why = Why(entry.state, entry.error_code, entry.error_message)
        found = await self._database.write(
            lambda connection: give_up(connection, tenant, call_id, why, outbox=self._outbox),
            tenant=tenant,
        )
        if found is not None:
            return found
        if self.crowded():
            await self.drain()
        self.note(entry)
        return entry

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """A row of its own, or a line on a page."""
        tenant, call_id = storable(tenant), storable(call_id)
        rows = await self._database.ask(_FIND, (call_id, tenant), tenant=tenant)
        if rows:
            return entry_of(tuple(rows[0]))
        if not pages.may_hold(call_id):
            return None
        await self.drain()
        return await self._database.read(
            lambda connection: pages.find(connection, tenant, call_id), tenant=tenant
        )

    def note(self, entry: Entry | Read) -> None:
        """Keep it until the next write, a tenth of a second at the most."""
        if self._behind.closing:
            raise closed()
        if len(entry.args) > _SMALL:
            whole = entry.entry() if isinstance(entry, Read) else entry
            entry = msgspec.structs.replace(whole, args=b"", args_hash=sha256(entry.args))
        self._behind.add(entry)

    @property
    def waiting(self) -> int:
        """How many calls are still to be written."""
        return self._behind.load

    def crowded(self) -> bool:
        """Callers wait for the disk before memory fills."""
        return self._behind.load >= _CROWD

    async def drain(self) -> None:
        """One write for all that wait; if it fails they go on waiting."""
        await self._behind.drain()

    async def calls_of(self, decisions: Collection[str], since_ns: int) -> dict[str, list[str]]:
        """By decision, in the order that they began."""
        await self.drain()

        def work(connection: Connection) -> dict[str, list[str]]:
            rows = connection.execute(
                sa.select(log.c.call_id, log.c.decision_id).where(log.c.created_ns >= since_ns)
            )
            calls = [(row[0], row[1]) for row in rows if row[1] in decisions]
            calls += pages.decided(connection, decisions, since_ns)
            found: dict[str, list[str]] = {}
            for call_id, decision in sorted(calls):
                found.setdefault(decision, []).append(call_id)
            return found

        return await self._database.read(work, tenant=HOUSE)

    async def entries(
        self, tenant: str, *, limit: int = 50, of: Whose | None = None
    ) -> Sequence[Entry]:
        """The newest first, those that still wait to be written included."""
        await self.drain()
        if limit < 1:
            return []
        tenant = storable(tenant)

        def work(connection: Connection) -> list[Entry]:
            paged = pages.newest(connection, tenant, limit, of)
            return pages.newest_of([*_rows(connection, tenant, limit, of), *paged], limit)

        return await self._database.read(work, tenant=tenant)

    async def _write(self, batch: list[Entry | Read]) -> None:
        await self._database.write(lambda connection: pages.write(connection, batch), tenant=HOUSE)


def _calls(
    database: Database, owner: Owner, hold: Hold, *, outbox: bool
) -> "PostgresCalls | SqliteCalls":
    if not isinstance(database, Statements):
        return SqliteCalls(database, owner, hold, outbox=outbox)
    from toolgate.store.calls_postgres import PostgresCalls  # noqa: PLC0415  as in `upsert`

    return PostgresCalls(database, owner, outbox=outbox)


def _rows(connection: Connection, tenant: str, limit: int, of: Whose | None) -> list[Entry]:
    theirs = [log.c.tenant_id == tenant]
    if of is not None:
        since_ns = pages.since(connection, log.c.tenant_id == tenant, log.c.created_ns, _MOST_ROWS)
        theirs += [log.c.created_ns >= since_ns, log.c.agent_id == storable(of.agent)]
        theirs += [log.c.user_id == storable(of.user)]
        theirs += [log.c.session_id == storable(of.session)] if of.session else []
    rows = connection.execute(
        sa.select(log)
        .where(*theirs)
        .order_by(log.c.created_ns.desc(), log.c.call_id.desc())
        .limit(limit)
    )
    return entries_of(tuple(row) for row in rows)
