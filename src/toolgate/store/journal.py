"""The journal in tables. Intents wait for the disk; finished pure calls are written behind.

A side effect has a row of its own in `tool_execution_log`. Pure calls share one (`store.pages`), at
a tenth of the cost.
"""

import asyncio
import logging
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate.errors import InvalidRequest
from toolgate.ledger.entry import MOVES, Entry, State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store import pages
from toolgate.store.database import Database
from toolgate.store.outage import closed
from toolgate.store.tables import tool_execution_log as log
from toolgate.store.text import storable

_log = logging.getLogger("toolgate.journal")
_CROWD = 10_000
_EVERY = 0.1
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
        self._waiting: list[Entry] = []
        self._underway = 0
        self._wake = asyncio.Event()
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write behind."""
        self._writing = asyncio.create_task(self._write_behind(), name="toolgate-journal")

    async def close(self) -> None:
        """Write what waits, then stop."""
        self._closing = True
        self._wake.set()
        if self._writing is not None:
            await self._writing
        await self.drain()

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
        if self._closing:
            raise closed()
        if not self._waiting:
            self._wake.set()
        if len(entry.args) > _SMALL:
            entry = msgspec.structs.replace(entry, args=b"", args_hash=sha256(entry.args))
        self._waiting.append(entry)

    def crowded(self) -> bool:
        """Callers wait for the disk before memory fills."""
        # What is being written may come back.
        return len(self._waiting) + self._underway >= _CROWD

    async def drain(self) -> None:
        """One write for all that wait; if it fails they go on waiting."""
        # A write that is under way may have begun before the newest note; the next has not.
        for _ in range(2):
            if self._draining is None or self._draining.done():
                if not self._waiting:
                    return
                self._draining = asyncio.create_task(self._write_waiting(), name="toolgate-drain")
            # Whoever goes away meanwhile must not stop a write that others wait for.
            await asyncio.shield(self._draining)

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

    async def _write_waiting(self) -> None:
        batch, self._waiting = self._waiting, []
        self._underway = len(batch)
        try:
            await self._database.write(lambda connection: pages.write(connection, batch))
        except BaseException:
            self._waiting = batch + self._waiting
            self._wake.set()
            raise
        finally:
            self._underway = 0

    async def _write_behind(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            if not self._closing:
                await asyncio.sleep(_EVERY)
            try:
                await self.drain()
            except Exception as error:  # noqa: BLE001  whatever it is, the next write may succeed
                # The entries still wait; once there are too many, calls are refused.
                _log.warning("the journal could not be written (%s)", type(error).__name__)


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
    )
