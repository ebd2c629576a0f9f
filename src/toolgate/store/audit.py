"""The audit log: a row for each change, in the transaction that makes it."""

from collections.abc import Iterable
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.store import records, tables
from toolgate.tenancy import account
from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import Change, RevokeKey


def write(connection: Connection, changes: Iterable[Change], actor: Actor) -> None:
    """Note each change under the actor's name."""
    now = clock.unix_ns()
    rows = [
        {
            "at_ns": now,
            "who": actor.who,
            "why": actor.why,
            "tenant_id": _whose(connection, change),
            "change": account.name_of(change),
            "details": account.details_of(change),
        }
        for change in changes
    ]
    if rows:
        connection.execute(records.audit_log.insert(), rows)


def read(
    connection: Connection, *, tenant: str | None, limit: int, before: int | None
) -> list[Record]:
    """The newest first."""
    column = records.audit_log.c
    asked = sa.select(
        column.id,
        column.at_ns,
        column.who,
        column.why,
        column.tenant_id,
        column.change,
        column.details,
    )
    if tenant is not None:
        asked = asked.where(column.tenant_id == tenant)
    if before is not None:
        asked = asked.where(column.id < before)
    return [
        Record(
            id=id_,
            at_ns=at_ns,
            who=who,
            why=why,
            tenant=whose,
            change=change,
            details=MappingProxyType(details),
        )
        for id_, at_ns, who, why, whose, change, details in connection.execute(
            asked.order_by(column.id.desc()).limit(limit)
        )
    ]


def _whose(connection: Connection, change: Change) -> str:
    if not isinstance(change, RevokeKey):
        return account.tenant_of(change)
    # It names only the key; whoever looks at the tenant's log wants to see it.
    key = tables.api_keys.c
    return connection.execute(sa.select(key.tenant_id).where(key.id == change.id)).scalar_one()
