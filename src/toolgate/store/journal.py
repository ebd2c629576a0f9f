"""The journal in tables. Intents wait for the disk; finished pure calls are written behind.

A side effect has a row of its own in `tool_execution_log`. Pure calls share one (`store.pages`), at
a tenth of the cost.
"""

from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import MOVES, Entry, State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store import pages
from toolgate.store.behind import Behind
from toolgate.store.database import Database
from toolgate.store.outage import closed
from toolgate.store.tables import tool_execution_log as log
from toolgate.store.text import storable

_CROWD = 10_000
# Larger arguments are digested at once: a crowd of them would fill the memory.
_SMALL = 4_096
_SUCCESS = {State.SUCCEEDED: True, State.FAILED: False, State.STARTED: None, State.UNKNOWN: None}
# For each state, those it can be reached from.
_BEFORE = {
    state: [before.value for before, after in MOVES.items() if before and state in after]
    for state in State
}


class TableJournal:
    """The journal port over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Entries that cannot be written still wait; once there are too many, calls are refused.
        self._behind = Behind[Entry]("journal", self._write)

    def start(self) -> None:
        """Begin to write behind."""
        self._behind.start()

    async def close(self) -> None:
        """Write what waits, then stop."""
        await self._behind.close()

    async def begin(self, entry: Entry) -> None:
        """The intent is durable when this returns."""
        row = _row(entry)

        def work(connection: Connection) -> None:
            connection.execute(log.insert(), row)

        try:
            await self._database.write(work)
        except IntegrityError:
            raise InvalidRequest(
                f"The call {entry.call_id!r} is on record already; it did not run again."
            ) from None

    async def end(self, entry: Entry) -> None:
        """Only a started entry can end, and only once; any other stays as it is."""

        def work(connection: Connection) -> None:
            connection.execute(
                log.update()
                .where(log.c.call_id == entry.call_id, log.c.state.in_(_BEFORE[entry.state]))
                .values(
                    state=entry.state.value,
                    success=_SUCCESS[entry.state],
                    duration_ms=entry.duration_ns / 1e6,
                    error_code=storable(entry.error_code),
                    error_message=storable(entry.error_message),
                )
            )

        await self._database.write(work)

    def note(self, entry: Entry) -> None:
        """Keep it until the next write, a tenth of a second at the most."""
        if self._behind.closing:
            raise closed()
        if len(entry.args) > _SMALL:
            entry = msgspec.structs.replace(entry, args=b"", args_hash=sha256(entry.args))
        self._behind.add(entry)

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

        return await self._database.read(work)

    async def entries(self, tenant: str, *, limit: int = 50) -> Sequence[Entry]:
        """The newest first, those that still wait to be written included."""
        await self.drain()
        if limit < 1:
            return []
        tenant = storable(tenant)

        def work(connection: Connection) -> list[Entry]:
            paged = pages.newest(connection, tenant, limit)
            return pages.newest_of([*_rows(connection, tenant, limit), *paged], limit)

        return await self._database.read(work)

    async def _write(self, batch: list[Entry]) -> None:
        await self._database.write(lambda connection: pages.write(connection, batch))


def _rows(connection: Connection, tenant: str, limit: int) -> list[Entry]:
    rows = connection.execute(
        sa.select(log)
        .where(log.c.tenant_id == tenant)
        .order_by(log.c.created_ns.desc(), log.c.call_id.desc())
        .limit(limit)
    )
    return [_entry(row) for row in rows.mappings()]


def _row(entry: Entry) -> dict[str, object]:
    row: dict[str, object] = {
        "call_id": entry.call_id,
        "tool_name": entry.tool,
        "fingerprint": entry.fingerprint,
        "effect": entry.effect.value,
        "tenant_id": entry.tenant,
        "agent_id": entry.agent,
        "user_id": entry.user,
        "persona_id": entry.persona,
        "session_id": entry.session,
        "turn_group": entry.turn_group,
        "caller_kind": entry.caller_kind.value,
        "args_hash": entry.args_hash or sha256(entry.args),
        "state": entry.state.value,
        "success": _SUCCESS[entry.state],
        "duration_ms": entry.duration_ns / 1e6,
        "error_code": entry.error_code,
        "error_message": entry.error_message,
        "created_ns": entry.started_ns,
        "decision_id": entry.decision,
    }
    return {name: storable(part) if isinstance(part, str) else part for name, part in row.items()}


def _entry(row: sa.RowMapping) -> Entry:
    return Entry(
        call_id=row["call_id"],
        tool=row["tool_name"],
        fingerprint=row["fingerprint"],
        effect=Effect(row["effect"]),
        tenant=row["tenant_id"],
        agent=row["agent_id"],
        user=row["user_id"],
        persona=row["persona_id"],
        session=row["session_id"],
        turn_group=row["turn_group"],
        caller_kind=CallerKind(row["caller_kind"]),
        args=b"",
        args_hash=row["args_hash"],
        started_ns=row["created_ns"],
        state=State(row["state"]),
        duration_ns=round(row["duration_ms"] * 1e6),
        error_code=row["error_code"],
        error_message=row["error_message"],
        decision=row["decision_id"],
    )
