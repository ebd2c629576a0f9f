"""Calls that were claimed and not begun: given back to whoever brought them, or given up."""

from sqlalchemy import Connection

from toolgate.ledger.charging import later
from toolgate.ledger.claims import Why, given_up, is_ended, released
from toolgate.ledger.entry import Entry
from toolgate.ledger.journal import Ended
from toolgate.store.budgets import charge
from toolgate.store.claiming import by_id, write
from toolgate.store.moment import now_ns
from toolgate.store.told import tell
from toolgate.tenancy.audit import ENDED

_NOT = Ended(accepted=False)


def release(connection: Connection, entry: Entry, *, again: bool, outbox: bool) -> Ended:
    """Its owner did not come to begin it. `again`: this very word may be on record."""
    found = by_id(connection, entry.tenant, entry.call_id, lock=True)
    if found is None:
        return _NOT
    now = now_ns(connection)
    after = released(found, entry, now)
    if after is None:
        done = again and is_ended(found, entry)
        return Ended(accepted=True, wanted_by=found.wanted_by) if done else _NOT
    if not write(connection, found, after):
        return _NOT
    tell(connection, after, now, outbox=outbox, change="call.released")
    return Ended(accepted=True, wanted_by=after.wanted_by)


def give_up(
    connection: Connection, tenant: str, call_id: str, why: Why, *, outbox: bool
) -> Entry | None:
    """Nobody brings it again: what is on record of it then, or nothing where it never began."""
    found = by_id(connection, tenant, call_id, lock=True)
    if found is None:
        return None
    now = now_ns(connection)
    after = given_up(found, why, now)
    if after is None or not write(connection, found, after):
        return found
    tell(connection, after, now, outbox=outbox, change=ENDED)
    charge(connection, later(found, after.state))
    return after
