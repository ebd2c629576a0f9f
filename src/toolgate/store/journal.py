"""The journal in tables. Intents wait for the disk; finished pure calls are written behind.

A side effect has a row of its own in `tool_execution_log`. Pure calls share one (`store.pages`), at
a tenth of the cost.
"""

import os
from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.ledger.claims import submitted
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Begun, Ended
from toolgate.ledger.machine import Action, Recovery
from toolgate.ledger.state import State, before
from toolgate.spec.document import sha256
from toolgate.spec.effect import CallerKind, Effect
from toolgate.store import pages
from toolgate.store.behind import Behind
from toolgate.store.database import Database
from toolgate.store.outage import closed
from toolgate.store.records import tool_execution_log as log
from toolgate.store.text import storable

_CROWD = 10_000
# Larger arguments are digested at once: a crowd of them would fill the memory.
_SMALL = 4_096
_SUCCESS: dict[State, bool | None] = dict.fromkeys(State) | {
    State.SUCCEEDED: True,
    State.FAILED: False,
}
_BEFORE = {state: [one.value for one in before(state)] for state in State}


class TableJournal:
    """The journal port over a database. `lease` and `ttl` are seconds, of an owner and of a key."""

    def __init__(self, database: Database, *, lease: float = 15.0, ttl: float = 86_400.0) -> None:
        self._database = database
        self._lease_ns = round(lease * 1e9)
        self._ttl_ns = round(ttl * 1e9)
        self.owner = f"{os.getpid():x}-{os.urandom(4).hex()}"
        # Entries that cannot be written still wait; once there are too many, calls are refused.
        self._behind = Behind[Entry]("journal", self._write)

    def start(self) -> None:
        """Begin to write behind."""
        self._behind.start()

    async def close(self) -> None:
        """Write what waits, then stop."""
        await self._behind.close()

    async def begin(self, entry: Entry, *, may_start: bool = True) -> Begun:
        """One transaction: the claim and the intent, or what is there already."""

        def work(connection: Connection) -> Begun:
            return self._claimed(connection, entry, may_start=may_start)

        try:
            return await self._database.write(work)
        except IntegrityError:
            raise InvalidRequest(
                f"The call {entry.call_id!r} is on record already; it did not run again."
            ) from None

    def _claimed(self, connection: Connection, entry: Entry, *, may_start: bool) -> Begun:
        now = clock.unix_ns()
        found = _by_key(connection, entry) if entry.key else None
        if found is not None:
            begun = submitted(
                found,
                entry,
                now_ns=now,
                lease_ns=now + self._lease_ns,
                owner=self.owner,
                may_start=may_start,
            )
            if begun.action is not Action.FORGET:
                if begun.entry != found:
                    _moved(connection, found, begun.entry)
                return begun
            connection.execute(
                log.update().where(log.c.call_id == found.call_id).values(once_key=None)
            )
        entry = msgspec.structs.replace(
            entry,
            state=State.STARTED,
            owner=self.owner,
            fence=1,
            tried=True,
            lease_ns=now + self._lease_ns,
            expires_ns=now + self._ttl_ns if entry.key else None,
        )
        connection.execute(log.insert(), _row(entry))
        return Begun(entry, Action.RUN)

    async def end(self, entry: Entry) -> Ended:
        """Only its owner can end it, only as long as it is, and only once."""

        def work(connection: Connection) -> Ended:
            found = connection.execute(
                log.update()
                .where(
                    log.c.call_id == entry.call_id,
                    log.c.fence == entry.fence,
                    log.c.state.in_(_BEFORE[entry.state]),
                )
                .values(
                    state=entry.state.value,
                    success=_SUCCESS[entry.state],
                    duration_ms=entry.duration_ns / 1e6,
                    error_code=storable(entry.error_code),
                    error_message=storable(entry.error_message),
                    permanent=entry.permanent,
                    result=_text(entry.result),
                    plan=_text(entry.plan),
                    lease_ns=None,
                    ended_ns=clock.unix_ns(),
                )
                .returning(log.c.wanted_by)
            ).first()
            return Ended(found is not None, "" if found is None else found[0])

        return await self._database.write(work)

    async def find(self, tenant: str, call_id: str) -> Entry | None:
        """One entry with a row of its own."""

        def work(connection: Connection) -> Entry | None:
            row = (
                connection.execute(
                    sa.select(log).where(log.c.call_id == call_id, log.c.tenant_id == tenant)
                )
                .mappings()
                .first()
            )
            return None if row is None else _entry(row)

        return await self._database.read(work)

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
        "chain_id": entry.chain,
        "chain_index": entry.chain_index,
        "planned": entry.planned.decode(),
        "turn_id": entry.turn_id,
        "once_scope": entry.scope,
        "once_key": entry.key or None,
        "digest": entry.digest,
        "recovery": entry.recovery.value,
        "owner": entry.owner,
        "fence": entry.fence,
        "lease_ns": entry.lease_ns,
        "expires_ns": entry.expires_ns,
        "tried": entry.tried,
        "permanent": entry.permanent,
        "approval_id": entry.approval,
        "args": _text(entry.args),
        "result": _text(entry.result),
        "plan": _text(entry.plan),
        "undo_until_ns": entry.undo_until_ns,
        "charges": "",
        "again_of": entry.again_of,
        "undo_of": entry.undo_of,
        "wanted_by": entry.wanted_by,
        "ended_ns": entry.ended_ns,
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
        args=_bytes(row["args"]),
        args_hash=row["args_hash"],
        started_ns=row["created_ns"],
        state=State(row["state"]),
        duration_ns=round(row["duration_ms"] * 1e6),
        error_code=row["error_code"],
        error_message=row["error_message"],
        decision=row["decision_id"],
        chain=row["chain_id"],
        chain_index=row["chain_index"],
        planned=row["planned"].encode(),
        turn_id=row["turn_id"],
        scope=row["once_scope"],
        key=row["once_key"] or "",
        digest=row["digest"],
        recovery=Recovery(row["recovery"]),
        owner=row["owner"],
        fence=row["fence"],
        lease_ns=row["lease_ns"],
        expires_ns=row["expires_ns"],
        tried=row["tried"],
        permanent=row["permanent"],
        approval=row["approval_id"],
        result=_bytes(row["result"]),
        plan=_bytes(row["plan"]),
        undo_until_ns=row["undo_until_ns"],
        again_of=row["again_of"],
        undo_of=row["undo_of"],
        wanted_by=row["wanted_by"],
        ended_ns=row["ended_ns"],
    )


def _text(raw: bytes) -> str | None:
    return storable(raw.decode("utf-8", "backslashreplace")) if raw else None


def _bytes(text: str | None) -> bytes:
    return text.encode() if text else b""


def _by_key(connection: Connection, entry: Entry) -> Entry | None:
    row = (
        connection.execute(
            sa.select(log).where(
                log.c.tenant_id == entry.tenant,
                log.c.once_scope == storable(entry.scope),
                log.c.once_key == storable(entry.key),
            )
        )
        .mappings()
        .first()
    )
    return None if row is None else _entry(row)


def _moved(connection: Connection, found: Entry, entry: Entry) -> None:
    connection.execute(
        log.update()
        .where(log.c.call_id == found.call_id, log.c.fence == found.fence)
        .values(
            state=entry.state.value,
            fence=entry.fence,
            lease_ns=entry.lease_ns,
            owner=entry.owner,
            tried=entry.tried,
            wanted_by=entry.wanted_by,
        )
    )
