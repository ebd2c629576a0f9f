"""What a submitted call makes of the rows that are there, in one transaction on either server."""

from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite

from toolgate.crash import crash_here
from toolgate.errors import InvalidRequest, StoreUnavailable
from toolgate.ledger.charging import later
from toolgate.ledger.claims import answering as answered_by
from toolgate.ledger.claims import continued, replayable, submitted
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Basis, Begun, Outdated
from toolgate.ledger.machine import Action
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import State
from toolgate.store import revision
from toolgate.store.budgets import charge
from toolgate.store.moment import now_ns
from toolgate.store.records import approvals
from toolgate.store.records import tool_execution_log as log
from toolgate.store.rows import COLUMNS, SUCCESS, entry_of, row_of
from toolgate.store.text import storable
from toolgate.store.told import tell, tell_event
from toolgate.store.whose import whole
from toolgate.tenancy.audit import ENDED

# A key that was free is taken a moment later, and the other way round; not three times.
_TRIES = 3


class Terms(NamedTuple):
    """On whose behalf, and how. `again`: this very intent may be on record, its answer lost.

    `basis`: what it was decided on, where that matters.
    """

    owner: Owner
    outbox: bool
    may_start: bool = True
    again: bool = False
    basis: Basis | None = None


def started(entry: Entry, owner: Owner, now: int) -> Entry:
    """A new claim with its intent. Its key is taken until it has ended, and then for a time.

    Without a time, what has one is a span: a server adds its own.
    """
    return msgspec.structs.replace(
        entry,
        started_ns=owner.moment(now) if now else 0,
        state=State.STARTED,
        owner=owner.name,
        fence=1,
        tried=True,
        lease_ns=now + owner.lease_ns,
        expires_ns=None,
    )


def claim(connection: Connection, entry: Entry, terms: Terms) -> Begun:
    """Whatever there is decides; where there is nothing, the entry is started."""
    basis = terms.basis
    if basis is not None and revision.newest(connection, basis.parts) > basis.revision:
        # It may have been begun while that still held.
        begun = by_id(connection, entry.tenant, entry.call_id) if terms.again else None
        if begun is None:
            raise Outdated
        return _own(begun, terms)
    for _ in range(_TRIES):
        begun = _claimed(connection, entry, terms)
        if begun is not None:
            return begun
    raise StoreUnavailable("The store is too busy with this very call. Try again; nothing ran.")


def _claimed(connection: Connection, entry: Entry, terms: Terms) -> Begun | None:
    found = _by_key(connection, entry) if entry.key else None
    now = now_ns(connection)
    if found is not None and not _is_waited_for(connection, found, entry):
        if found.call_id == entry.call_id and terms.again and _is_mine(found, terms):
            return Begun(found, Action.RUN)
        # Also the same id: a queued call can be brought twice.
        begun = submitted(
            found,
            entry,
            now_ns=terms.owner.time_for(found, now),
            lease_ns=now + terms.owner.lease_ns,
            owner=terms.owner.name,
            may_start=terms.may_start,
        )
        if begun.action is Action.FORGET and found.call_id == entry.call_id:
            # Brought once more: it has its answer, and its id is used once.
            begun = Begun(found, Action.REPLAY)
        if begun.action is not Action.FORGET:
            return begun if _moved(connection, found, begun, terms, now) else None
        ran = run_again(connection, found, entry)
        if ran is not None:
            return ran
        if not (terms.may_start or entry.approval):
            return Begun(entry, Action.ASK)
        _free_key(connection, found)
    if entry.approval:
        begun = _on_approval(connection, entry, terms, now)
        if begun.action is Action.REFUSE and entry.key and _by_key(connection, entry) != found:
            # A twin used the approval up since we looked: what it put on record decides.
            return None
        return begun
    if not terms.may_start:
        return Begun(entry, Action.ASK)
    return _inserted(connection, started(entry, terms.owner, now), terms, now)


def answering(
    connection: Connection, entry: Entry, owner: Owner, *, may_start: bool
) -> Entry | None:
    """What is answered again under the entry's key, by a look that locks and changes nothing."""
    found = _by_key(connection, entry, lock=False)
    if found is None:
        return None
    return replayable(
        found,
        entry,
        lambda: run_again(connection, found, entry),
        now_ns=owner.time_for(found, now_ns(connection)),
        may_start=may_start,
    )


def _inserted(connection: Connection, entry: Entry, terms: Terms, now: int) -> Begun | None:
    values = dict(zip(COLUMNS, row_of(entry), strict=True))
    statement = sqlite.insert(log)
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415  a tenth of a start on SQLite

        statement = postgresql.insert(log)
    if connection.execute(statement.on_conflict_do_nothing(), values).rowcount:
        crash_here("CP4")
        _tell_started(connection, entry, terms, now)
        return Begun(entry, Action.RUN)
    found = by_id(connection, entry.tenant, entry.call_id)
    if found is not None:
        return _own(found, terms)
    taken = sa.select(log.c.call_id).where(log.c.call_id == storable(entry.call_id))
    with whole(connection):
        # It may be another tenant's.
        is_taken = connection.execute(taken).first() is not None
    if is_taken:
        raise on_record_already(entry)
    return None


def _own(found: Entry, terms: Terms) -> Begun:
    """The same id again: this very attempt, whose answer was lost, or a mistake."""
    if terms.again and _is_mine(found, terms):
        return Begun(found, Action.RUN)
    raise on_record_already(found)


def _is_mine(found: Entry, terms: Terms) -> bool:
    is_first = found.owner == terms.owner.name and found.fence == 1
    return is_first and found.state is State.STARTED


def on_record_already(entry: Entry) -> InvalidRequest:
    """An id is used once."""
    return InvalidRequest(f"The call {entry.call_id!r} is on record already; it did not run again.")


def _on_approval(connection: Connection, entry: Entry, terms: Terms, now: int) -> Begun:
    """The approval is used up, and the call that waited for it goes on: both or neither."""
    column = approvals.c
    usable = (
        (column.id == storable(entry.approval))
        & (column.tenant_id == storable(entry.tenant))
        & (column.state == "approved")
        & (column.expires_ns > now)
    )
    agreed = connection.execute(
        sa.select(column.call_id).where(usable).with_for_update()
    ).scalar_one_or_none()
    waited = None if agreed is None else by_id(connection, entry.tenant, agreed, lock=True)
    if waited is None:
        return Begun(entry, Action.REFUSE)
    begun = continued(
        waited,
        entry,
        now_ns=now,
        lease_ns=now + terms.owner.lease_ns,
        owner=terms.owner.name,
    )
    if begun.action is not Action.RUN:
        return begun
    begun = Begun(msgspec.structs.replace(begun.entry, expires_ns=None), Action.RUN)
    connection.execute(approvals.update().where(usable).values(state="used"))
    if not write(connection, waited, begun.entry):
        raise StoreUnavailable("The store changed meanwhile. Try again; nothing ran.")
    crash_here("CP4")
    _tell_started(connection, begun.entry, terms, now)
    return begun


def _moved(connection: Connection, found: Entry, begun: Begun, terms: Terms, now: int) -> bool:
    if begun.entry == found:
        return True
    if not write(connection, found, begun.entry):
        return False
    if begun.entry.fence != found.fence:
        change = ENDED if begun.action is Action.PARK else "call.taken"
        tell(connection, begun.entry, now, outbox=terms.outbox, change=change)
        if State.UNKNOWN in {found.state, begun.entry.state}:
            charge(connection, later(found, begun.entry.state))
    return True


def _tell_started(connection: Connection, entry: Entry, terms: Terms, now: int) -> None:
    if terms.outbox:
        tell_event(connection, entry, now)


def write(connection: Connection, found: Entry, entry: Entry) -> bool:
    """Put the entry in the place of the one that was found, if that is still there."""
    place = log.update().where(
        log.c.call_id == found.call_id,
        log.c.fence == found.fence,
        log.c.state == found.state.value,
    )
    if State.RELEASED in {found.state, entry.state}:
        # Nothing has happened by then, so that all of it may be another.
        whole_row = dict(zip(COLUMNS, row_of(entry), strict=True))
        return connection.execute(place.values(whole_row)).rowcount == 1
    done = connection.execute(
        place.values(
            state=entry.state.value,
            success=SUCCESS[entry.state],
            fence=entry.fence,
            created_ns=entry.started_ns,
            lease_ns=entry.lease_ns,
            expires_ns=entry.expires_ns,
            owner=entry.owner,
            tried=entry.tried,
            approval_id=storable(entry.approval),
            session_id=storable(entry.session),
            turn_group=storable(entry.turn_group),
            turn_id=storable(entry.turn_id),
            decision_id=entry.decision,
            once_scope=storable(entry.scope),
            once_key=storable(entry.key) or None,
            wanted_by=storable(entry.wanted_by),
            error_code=storable(entry.error_code),
            error_message=storable(entry.error_message),
            ended_ns=entry.ended_ns,
        )
    )
    return done.rowcount == 1


def by_id(connection: Connection, tenant: str, call_id: str, *, lock: bool = False) -> Entry | None:
    """One row of its own; `lock` it for the rest of the transaction."""
    asked = sa.select(log).where(
        log.c.call_id == storable(call_id), log.c.tenant_id == storable(tenant)
    )
    row = connection.execute(asked.with_for_update() if lock else asked).first()
    return None if row is None else entry_of(tuple(row))


def _by_key(connection: Connection, entry: Entry, *, lock: bool = True) -> Entry | None:
    asked = sa.select(log).where(
        log.c.tenant_id == storable(entry.tenant),
        log.c.once_scope == storable(entry.scope),
        log.c.once_key == storable(entry.key),
    )
    row = connection.execute(asked.with_for_update() if lock else asked).first()
    return None if row is None else entry_of(tuple(row))


def run_again(connection: Connection, found: Entry, intent: Entry) -> Begun | None:
    """What answers for a failed call whose key would be free, because an operator ran it again."""
    if found.state is not State.FAILED:
        return None
    known: dict[str, Entry] = {}
    of = [storable(found.call_id)]
    while of:
        rows = connection.execute(
            sa.select(log).where(
                log.c.tenant_id == storable(found.tenant),
                log.c.again_of.in_(of),
                # What the index says of itself.
                sa.text("again_of <> ''"),
            )
        )
        new = [one for one in (entry_of(tuple(row)) for row in rows) if one.call_id not in known]
        known |= {one.call_id: one for one in new}
        of = [one.call_id for one in new]
    return answered_by(found, intent, known.values())


def _is_waited_for(connection: Connection, found: Entry, entry: Entry) -> bool:
    """Whether it is the very call that the approval was asked for."""
    if not entry.approval or found.state is not State.WAITING:
        return False
    asked = sa.select(approvals.c.call_id).where(
        approvals.c.id == storable(entry.approval),
        approvals.c.tenant_id == storable(entry.tenant),
    )
    return connection.execute(asked).scalar_one_or_none() == found.call_id


def _free_key(connection: Connection, found: Entry) -> None:
    connection.execute(log.update().where(log.c.call_id == found.call_id).values(once_key=None))
