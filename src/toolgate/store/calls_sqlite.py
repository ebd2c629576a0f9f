"""Claims and ends on SQLite: a few fixed statements on the driver itself, in the writer's turn."""

from sqlalchemy import Connection

from toolgate import clock
from toolgate.crash import crash_here
from toolgate.ledger.claims import kept_ns
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended
from toolgate.ledger.machine import Action
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import State, before
from toolgate.store.claiming import Terms, claim, started
from toolgate.store.database import Database
from toolgate.store.ending import ENDING, ending_values, guard_values, window_ns
from toolgate.store.readers import driver_of
from toolgate.store.rows import COLUMNS, row_of
from toolgate.store.sqlite import Sqlite, whole
from toolgate.store.told import AUDIT, OUTBOX, audit_values, outbox_values


def _insert(table: str, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608


_CLAIM = _insert("tool_execution_log", COLUMNS) + " ON CONFLICT DO NOTHING"
_AUDIT = _insert("audit_log", AUDIT)
_OUTBOX = _insert("outbox", OUTBOX)
_CHARGE = "UPDATE budget_leases SET spent = spent + ? WHERE id = ?"
# Asked for beside the update: RETURNING takes three times as long.
_WANTED = "SELECT wanted_by FROM tool_execution_log WHERE call_id = ?"
_SET = ", ".join(f"{column} = ?" for column in ENDING)
_END = {
    state: (
        f"UPDATE tool_execution_log SET {_SET}, lease_ns = NULL, ended_ns = ?, expires_ns = ?, "  # noqa: S608
        "undo_until_ns = ? "
        "WHERE call_id = ? AND tenant_id = ? AND fence = ? "
        f"AND state IN ({', '.join(repr(one.value) for one in sorted(before(state)))})"
    )
    for state in State
}


class SqliteCalls:
    """The two writes around a side effect."""

    def __init__(self, database: Database, owner: Owner, *, outbox: bool) -> None:
        # Around so little work, a savepoint is a third of it.
        self._write = database.write_bare if isinstance(database, Sqlite) else database.write
        self._owner = owner
        self._outbox = outbox

    async def begin(self, entry: Entry, *, may_start: bool) -> Begun:
        """One insert that can conflict; only then the rows are looked at."""

        def work(connection: Connection) -> Begun:
            if may_start and not entry.approval:
                driver = driver_of(connection)
                now = clock.unix_ns()
                new = started(entry, self._owner, now)
                if driver.execute(_CLAIM, row_of(new)).rowcount:
                    crash_here("CP4")
                    if self._outbox and (told := outbox_values(new, now)):
                        driver.execute(_OUTBOX, told)
                    return Begun(new, Action.RUN)
            terms = Terms(self._owner, self._outbox, may_start)
            # It may write before it finds that it cannot go on.
            return whole(connection, lambda connection: claim(connection, entry, terms))

        return await self._write(work)

    async def end(self, entry: Entry) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""

        def work(connection: Connection) -> Ended:
            driver = driver_of(connection)
            now = clock.unix_ns()
            kept, window = kept_ns(entry, self._owner.ttl_ns), window_ns(entry)
            expires_ns = None if kept is None else now + kept
            until_ns = None if window is None else now + window
            guard = guard_values(entry)
            values = (*ending_values(entry), now, expires_ns, until_ns, *guard)
            if not driver.execute(_END[entry.state], values).rowcount:
                return Ended(accepted=False)
            (wanted_by,) = driver.execute(_WANTED, guard[:1]).fetchone()
            crash_here("CP7")
            driver.execute(_AUDIT, audit_values(entry, now))
            if self._outbox and (told := outbox_values(entry, now)):
                driver.execute(_OUTBOX, told)
            for lease, amount in entry.charges:
                driver.execute(_CHARGE, (amount, lease))
            return Ended(accepted=True, wanted_by=wanted_by)

        return await self._write(work)
