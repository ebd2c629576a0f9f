"""Approvals as a table. What a person decides, and what becomes of the call, commit together."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate import clock
from toolgate.ledger.approval import (
    Approval,
    Kind,
    Requested,
    Some,
    Standing,
    Word,
    event_of,
    is_full,
    waiting,
    word,
)
from toolgate.ledger.claims import submitted
from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Action
from toolgate.ledger.state import State
from toolgate.store import audit
from toolgate.store.claiming import by_id, run_again, write
from toolgate.store.database import HOUSE, Database
from toolgate.store.moment import now_ns
from toolgate.store.outbox import enqueue
from toolgate.store.records import UNDECIDED, approvals
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import COLUMNS, entry_of, row_of
from toolgate.store.text import storable

_OPEN = [Standing.WAITING.value, Standing.APPROVED.value]
_AT_ONCE = 500
_DENIED = "approval_denied"
_STANDS = "SELECT state, expires_ns FROM approvals WHERE id = $1 AND tenant_id = $2"


class TableApprovals:
    """The port for approvals over a database. `outbox`: whether events wait there to be sent."""

    def __init__(self, database: Database, *, outbox: bool = False) -> None:
        self._database = database
        self._outbox = outbox

    async def request(self, wanted: Approval, intent: Entry, ttl_ns: int) -> Requested:
        """What holds for this call; of two who ask at once, the second finds the first's."""

        def work(connection: Connection) -> Requested:
            return self._requested(connection, wanted, intent, ttl_ns)

        try:
            return await self._database.write(work, tenant=wanted.tenant)
        except IntegrityError:
            return await self._database.write(work, tenant=wanted.tenant)

    async def stands(self, tenant: str, id_: str) -> Standing | None:
        """Two short columns of one row.

        By this process's clock, which is near the store's: a request has the last word.
        """
        found = await self._database.ask(_STANDS, (storable(id_), storable(tenant)), tenant=tenant)
        if not found:
            return None
        state, expires_ns = Standing(found[0][0]), found[0][1]
        is_over = state.value in _OPEN and clock.unix_ns() >= expires_ns
        return Standing.EXPIRED if is_over else state

    async def find(self, tenant: str, id_: str) -> Approval | None:
        """As it stands now."""

        def work(connection: Connection) -> Approval | None:
            of_id = approvals.c.id == storable(id_)
            where = (of_id, approvals.c.tenant_id == storable(tenant)) if tenant else (of_id,)
            found = _read(connection, *where, limit=1)
            return found[0] if found else None

        return await self._database.read(work, tenant=tenant or HOUSE)

    async def search(self, some: Some) -> Sequence[Approval]:
        """The newest first; what is over and not swept yet is shown as expired."""
        column = approvals.c
        where: list[sa.ColumnElement[bool]] = []
        if some.tenant:
            where.append(column.tenant_id == storable(some.tenant))
        if some.agent is not None:
            where.append(column.agent_id == storable(some.agent))
        if some.user is not None:
            where.append(column.user_id == storable(some.user))
        if some.before is not None:
            at_ns, id_ = some.before
            earlier = sa.and_(column.created_ns == at_ns, column.id < storable(id_))
            where.append(sa.or_(column.created_ns < at_ns, earlier))

        def work(connection: Connection) -> list[Approval]:
            now = now_ns(connection)
            if some.states:
                where.append(_stands(now).in_([one.value for one in some.states]))
            return _read(connection, *where, limit=some.limit)

        return await self._database.read(work, tenant=some.tenant or HOUSE)

    async def decide(
        self, approval: Approval, *, approved: bool, who: str, why: str
    ) -> Approval | None:
        """One update that only the first of several makes."""
        state = Standing.APPROVED if approved else Standing.DENIED

        def work(connection: Connection) -> Approval | None:
            now = now_ns(connection)
            changed = connection.execute(
                approvals.update()
                .where(
                    approvals.c.id == storable(approval.id),
                    approvals.c.state == Standing.WAITING.value,
                    approvals.c.expires_ns > now,
                )
                .values(
                    state=state.value,
                    decided_ns=now,
                    decided_by=storable(who),
                    reason=storable(why),
                )
            )
            if not changed.rowcount:
                return None
            decided = msgspec.structs.replace(
                approval, state=state, decided_ns=now, decided_by=who, reason=why
            )
            if not approved:
                _close(connection, [approval.id], State.FAILED, _DENIED, f"Denied: {why}", now)
            self._note(connection, decided, state.value, who, why, now)
            return decided

        return await self._database.write(work, tenant=approval.tenant)

    async def sweep(self) -> int:
        """A few at a time: nobody waits long for the writer in between."""

        def work(connection: Connection) -> int:
            now = now_ns(connection)
            over = _read(
                connection,
                approvals.c.state.in_(_OPEN),
                approvals.c.expires_ns <= now,
                limit=_AT_ONCE,
                lock=True,
            )
            self._expire(connection, over, now)
            return len(over)

        found = last = await self._database.write(work, tenant=HOUSE)
        while last == _AT_ONCE:
            last = await self._database.write(work, tenant=HOUSE)
            found += last
        return found

    def _requested(
        self, connection: Connection, wanted: Approval, intent: Entry, ttl_ns: int
    ) -> Requested:
        now = now_ns(connection)
        found = _read(
            connection,
            approvals.c.tenant_id == storable(wanted.tenant),
            approvals.c.hash == wanted.hash,
            approvals.c.state.in_([*_OPEN, Standing.DENIED.value]),
            limit=_AT_ONCE,
        )
        # Looked at behind the approvals: a twin that uses one up puts the key on record with it, so
        # whoever does not see the approval any more sees the key, and asks nobody a second time.
        if intent.key and _is_on_record(connection, intent, now):
            return Requested(Word.ON_RECORD, wanted)
        said = word(found, now)
        if said is not None:
            return said
        self._expire(connection, [one for one in found if one.state.value in _OPEN], now)
        if _is_full(connection, wanted, now):
            return Requested(Word.FULL, wanted)
        asked = msgspec.structs.replace(wanted, created_ns=now, expires_ns=now + ttl_ns)
        connection.execute(approvals.insert(), _values(asked))
        before = by_id(connection, asked.tenant, asked.call_id, lock=True)
        entry = waiting(intent, asked, before)
        if before is None or before.state is not State.RELEASED:
            connection.execute(log.insert(), dict(zip(COLUMNS, row_of(entry), strict=True)))
        else:
            write(connection, before, entry)
        self._note(connection, asked, "requested", asked.agent or asked.user, "", now)
        return Requested(Word.WAIT, asked, is_new=True)

    def _expire(self, connection: Connection, over: Sequence[Approval], now: int) -> None:
        ids = [one.id for one in over]
        if ids:
            connection.execute(
                approvals.update()
                .where(approvals.c.id.in_(ids), approvals.c.state.in_(_OPEN))
                .values(state=Standing.EXPIRED.value)
            )
            _close(connection, ids, State.EXPIRED, "", "Nobody came in time.", now)
        for one in over:
            expired = msgspec.structs.replace(one, state=Standing.EXPIRED)
            self._note(connection, expired, Standing.EXPIRED.value, "", "", now)

    def _note(
        self, connection: Connection, approval: Approval, what: str, who: str, why: str, now: int
    ) -> None:
        """In the audit, and in the outbox if there is one."""
        event = event_of(approval, what, now)
        details = {
            "agent": approval.agent,
            "approval": approval.id,
            "call_id": approval.call_id,
            "hash": approval.hash,
            "kind": approval.kind.value,
            "policy_revision": approval.policy_revision,
            "shown_hash": audit.shown_hash(
                storable(approval.args.decode()), storable(approval.prompt), approval.fingerprint
            ),
            "tool": approval.tool,
            "user": approval.user,
        }
        row = {
            "at_ns": now,
            "who": storable(who),
            "why": storable(why),
            "tenant_id": storable(approval.tenant),
            "change": event.kind,
            "details": {name: storable(value) for name, value in details.items()},
        }
        audit.put(connection, [row | {"digest": audit.digest_of(row)}])
        if self._outbox:
            enqueue(connection, event)


def _is_full(connection: Connection, wanted: Approval, now: int) -> bool:
    column = approvals.c
    is_same = sa.and_(
        column.agent_id == storable(wanted.agent), column.user_id == storable(wanted.user)
    )
    of_tenant, of_requester = connection.execute(
        sa.select(sa.func.count(), sa.func.count(sa.case((is_same, 1)))).where(
            column.tenant_id == storable(wanted.tenant),
            # In the words of the index over those: all others are passed over.
            sa.text(UNDECIDED),
            column.expires_ns > now,
        )
    ).one()
    return is_full(of_tenant=of_tenant, of_requester=of_requester)


def _is_on_record(connection: Connection, intent: Entry, now: int) -> bool:
    row = connection.execute(
        sa.select(log).where(
            log.c.tenant_id == storable(intent.tenant),
            log.c.once_scope == storable(intent.scope),
            log.c.once_key == storable(intent.key),
        )
    ).first()
    if row is None:
        return False
    found = entry_of(tuple(row))
    begun = submitted(found, intent, now_ns=now, lease_ns=now, owner="", may_start=False)
    if begun.action is Action.FORGET:
        return run_again(connection, found, intent) is not None
    return begun.action is not Action.ASK


def _close(
    connection: Connection, ids: Sequence[str], state: State, code: str, message: str, now: int
) -> None:
    """The calls that waited for these."""
    connection.execute(
        log.update()
        .where(log.c.approval_id.in_(ids), log.c.state == State.WAITING.value)
        .values(
            state=state.value,
            success=False if state is State.FAILED else None,
            error_code=code,
            error_message=storable(message),
            ended_ns=now,
        )
    )


def _stands(now: int) -> sa.ColumnElement[str]:
    """`ledger.approval.standing`, for the server."""
    column = approvals.c
    return sa.case(
        (
            sa.and_(column.state.in_(_OPEN), column.expires_ns <= now),
            Standing.EXPIRED.value,
        ),
        else_=column.state,
    )


def _read(
    connection: Connection, *where: sa.ColumnElement[bool], limit: int, lock: bool = False
) -> list[Approval]:
    asked = (
        sa.select(approvals)
        .where(*where)
        .order_by(approvals.c.created_ns.desc(), approvals.c.id.desc())
        .limit(limit)
    )
    if lock:
        asked = asked.with_for_update(skip_locked=True)
    return [_approval(row) for row in connection.execute(asked).mappings()]


def _values(approval: Approval) -> dict[str, object]:
    return {
        "id": approval.id,
        "tenant_id": storable(approval.tenant),
        "hash": approval.hash,
        "call_id": approval.call_id,
        "kind": approval.kind.value,
        "tool_name": storable(approval.tool),
        "fingerprint": approval.fingerprint,
        "agent_id": storable(approval.agent),
        "user_id": storable(approval.user),
        "args": storable(approval.args.decode()),
        "prompt": storable(approval.prompt),
        "policy_revision": storable(approval.policy_revision),
        "state": approval.state.value,
        "created_ns": approval.created_ns,
        "expires_ns": approval.expires_ns,
    }


def _approval(row: sa.RowMapping) -> Approval:
    return Approval(
        id=row["id"],
        tenant=row["tenant_id"],
        hash=row["hash"],
        call_id=row["call_id"],
        kind=Kind(row["kind"]),
        tool=row["tool_name"],
        fingerprint=row["fingerprint"],
        agent=row["agent_id"],
        user=row["user_id"],
        args=row["args"].encode(),
        prompt=row["prompt"],
        policy_revision=row["policy_revision"],
        state=Standing(row["state"]),
        created_ns=row["created_ns"],
        expires_ns=row["expires_ns"],
        decided_ns=row["decided_ns"],
        decided_by=row["decided_by"],
        reason=row["reason"],
    )
