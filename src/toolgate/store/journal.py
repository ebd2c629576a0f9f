"""The journal in tables. Intents wait for the disk; finished pure calls are written behind.

A side effect has a row of its own in `tool_execution_log`. Pure calls share one: a page in
`call_pages` holds what a tenant's agents read between two writes, at a tenth of the cost.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nlargest

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.ledger.entry import Entry, State
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store.database import Database
from toolgate.store.tables import call_pages as pages
from toolgate.store.tables import tool_execution_log as log

_CROWD = 2_000
_EVERY = 0.1
_SUCCESS = {State.SUCCEEDED: True, State.FAILED: False, State.STARTED: None, State.UNKNOWN: None}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


class TableJournal:
    """The journal port over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[Entry] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._writing: asyncio.Task[None] | None = None

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
        await self._database.write(lambda connection: connection.execute(log.insert(), _row(entry)))

    async def end(self, entry: Entry) -> None:
        """Only a started entry can end, and only once."""

        def work(connection: Connection) -> None:
            connection.execute(
                log.update()
                .where(log.c.call_id == entry.call_id, log.c.state == State.STARTED.value)
                .values(
                    state=entry.state.value,
                    success=_SUCCESS[entry.state],
                    duration_ms=entry.duration_ns / 1e6,
                    error_code=entry.error_code,
                    error_message=entry.error_message,
                )
            )

        await self._database.write(work)

    def note(self, entry: Entry) -> None:
        """Keep it until the next write, a tenth of a second at the most."""
        if not self._waiting:
            self._wake.set()
        self._waiting.append(entry)

    def crowded(self) -> bool:
        """Callers wait for the disk before memory fills."""
        return len(self._waiting) >= _CROWD

    async def drain(self) -> None:
        """One write for all that wait; if it fails they go on waiting."""
        batch = self._waiting
        if not batch:
            return
        self._waiting = []
        try:
            await self._database.write(lambda connection: _write_pages(connection, batch))
        except BaseException:
            self._waiting = batch + self._waiting
            raise

    async def entries(self, tenant: str, *, limit: int = 50) -> Sequence[Entry]:
        """The newest first, those that still wait to be written included."""
        await self.drain()

        def work(connection: Connection) -> list[Entry]:
            found = [*_rows(connection, tenant, limit), *_paged(connection, tenant, limit)]
            return nlargest(limit, found, key=lambda entry: (entry.started_ns, entry.call_id))

        return await self._database.read(work)

    async def _write_behind(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            if not self._closing:
                await asyncio.sleep(_EVERY)
            try:
                await self.drain()
            except StoreError:
                # The entries still wait; once there are too many, calls are refused.
                self._wake.set()


def _write_pages(connection: Connection, entries: Iterable[Entry]) -> None:
    by_tenant: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for entry in entries:
        by_tenant[entry.tenant].append(_packed(entry))
    connection.execute(
        pages.insert(),
        [
            {
                "tenant_id": tenant,
                "first_call_id": packed[0][0],
                "written_ns": clock.unix_ns(),
                "calls": len(packed),
                "entries": _encode(packed),
            }
            for tenant, packed in by_tenant.items()
        ],
    )


def _packed(entry: Entry) -> tuple[object, ...]:
    """An entry's fields in their order, with the digest of its arguments instead of themselves."""
    return (
        entry.call_id,
        entry.tool,
        entry.fingerprint,
        entry.effect,
        entry.tenant,
        entry.agent,
        entry.user,
        entry.persona,
        entry.session,
        entry.turn_group,
        entry.caller_kind,
        b"",
        entry.started_ns,
        entry.state,
        entry.duration_ns,
        entry.error_code,
        entry.error_message,
        sha256(entry.args),
    )


def _paged(connection: Connection, tenant: str, limit: int) -> list[Entry]:
    """The newest pages until they hold enough entries."""
    found: list[Entry] = []
    rows = connection.execute(
        sa.select(pages.c.entries)
        .where(pages.c.tenant_id == tenant)
        .order_by(pages.c.written_ns.desc())
        .limit(limit)
    )
    for row in rows:
        found.extend(_decode(row.entries))
        if len(found) >= limit:
            break
    return found


def _rows(connection: Connection, tenant: str, limit: int) -> list[Entry]:
    rows = connection.execute(
        sa.select(log)
        .where(log.c.tenant_id == tenant)
        .order_by(log.c.created_ns.desc(), log.c.call_id.desc())
        .limit(limit)
    )
    return [_entry(row) for row in rows.mappings()]


def _row(entry: Entry) -> dict[str, object]:
    return {
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
        "args_hash": sha256(entry.args),
        "state": entry.state.value,
        "success": _SUCCESS[entry.state],
        "duration_ms": entry.duration_ns / 1e6,
        "error_code": entry.error_code,
        "error_message": entry.error_message,
        "created_ns": entry.started_ns,
    }


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
