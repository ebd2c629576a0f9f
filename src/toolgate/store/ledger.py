"""The ledger in tables: every step is the machine's, on a row that nobody else is at."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.errors import InvalidRequest
from toolgate.ledger.claims import taken, undoing
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun
from toolgate.ledger.ledger import Which
from toolgate.ledger.machine import Action, Event, Settle, Start, Undone, step
from toolgate.ledger.state import OPEN, State
from toolgate.store.claiming import by_id, write
from toolgate.store.database import Database
from toolgate.store.moment import now_ns
from toolgate.store.owner import Owner
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import entries_of, entry_of
from toolgate.store.text import storable
from toolgate.store.told import tell
from toolgate.tenancy.audit import ENDED

_OPEN = [state.value for state in sorted(OPEN)]
# What cannot be read stays where it is, and is passed over.
_UNREADABLE = 1_000
_OURS = frozenset({Action.RUN, Action.AGAIN, Action.PROBE, Action.COMPENSATE})


class TableLedger:
    """The ledger port over a database. `owner` is the journal's: it renews what both hold."""

    def __init__(self, database: Database, owner: Owner, *, outbox: bool = False) -> None:
        self._database = database
        self._owner = owner
        self._outbox = outbox

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry with a row of its own."""
        return await self._database.read(lambda connection: by_id(connection, tenant, call_id))

    async def search(self, which: Which) -> Sequence[Entry]:
        """Those that began last come first; the cursor is a call's id."""
        if which.limit < 1:
            return []
        return await self._database.read(lambda connection: _found(connection, which))

    async def lost(self, limit: int) -> Sequence[Entry]:
        """Whose lease ended first comes first."""

        def work(connection: Connection) -> list[Entry]:
            rows = connection.execute(
                sa.select(log)
                .where(log.c.state.in_(_OPEN), log.c.lease_ns <= now_ns(connection))
                .order_by(log.c.lease_ns)
                .limit(max(limit, 0) + _UNREADABLE)
            )
            return entries_of(tuple(row) for row in rows)[: max(limit, 0)]

        return await self._database.read(work)

    async def take(self, entry: Entry) -> Begun:
        """By the row as it is now: another may have been quicker."""

        def work(connection: Connection) -> Begun:
            found = by_id(connection, entry.tenant, entry.call_id, lock=True)
            if found is None or found.fence != entry.fence:
                return Begun(found or entry, Action.REFUSE)
            now = now_ns(connection)
            begun = taken(
                found, now_ns=now, lease_ns=now + self._owner.lease_ns, owner=self._owner.name
            )
            change = ENDED if begun.action is Action.PARK else "call.taken"
            return begun if self._put(connection, found, begun.entry, now, change) else _not(found)

        return self._held(await self._database.write(work))

    async def start(self, entry: Entry) -> bool:
        """From here on it may have happened."""
        return await self._step(entry, Start(entry.fence), change="call.started")

    async def undo(self, entry: Entry) -> Begun:
        """By the row as it is now, and within its time."""

        def work(connection: Connection) -> Begun:
            found = by_id(connection, entry.tenant, entry.call_id, lock=True)
            if found is None:
                return _not(entry)
            now = now_ns(connection)
            begun = undoing(
                found, now_ns=now, lease_ns=now + self._owner.lease_ns, owner=self._owner.name
            )
            changes = {"call.undo"}
            return (
                begun
                if self._put(connection, found, begun.entry, now, changes.pop())
                else _not(found)
            )

        return self._held(await self._database.write(work))

    async def undone(self, entry: Entry, *, done: bool, why: str = "") -> bool:
        """What failed can be tried again."""
        self._owner.running.discard(entry.call_id)
        said = {} if done else {"error_code": "compensation_failed", "error_message": why}
        event = Undone(fence=entry.fence, done=done)
        return await self._step(entry, event, change=ENDED, why=why, **said)

    async def settle(self, entry: Entry, *, happened: bool, who: str, why: str) -> bool:
        """Whoever knows it says so under a name, with a reason."""
        return await self._step(entry, Settle(happened), change="call.settled", who=who, why=why)

    async def renew(self) -> int:
        """One statement for all that run here."""
        running = sorted(self._owner.running)
        if not running:
            return 0

        def work(connection: Connection) -> int:
            return connection.execute(
                log.update()
                .where(
                    _among(connection, running),
                    log.c.owner == self._owner.name,
                    log.c.state.in_(_OPEN),
                    log.c.lease_ns.is_not(None),
                )
                .values(lease_ns=now_ns(connection) + self._owner.lease_ns)
            ).rowcount

        return await self._database.write(work)
