"""What is told of a side effect in the transaction that moves it: the audit row, and the event."""

from typing import Any

from sqlalchemy import Connection

from toolgate.ledger.entry import Entry
from toolgate.ledger.events import event_of
from toolgate.store import audit
from toolgate.store.outbox import enqueue
from toolgate.store.text import json_text, storable
from toolgate.tenancy.audit import ENDED

AUDIT = ("at_ns", "who", "why", "tenant_id", "change", "details", "digest")
OUTBOX = ("at_ns", "tenant_id", "kind", "key", "payload")


def tell(
    connection: Connection,
    entry: Entry,
    at_ns: int,
    *,
    outbox: bool,
    change: str = ENDED,
    who: str = "",
    why: str = "",
) -> None:
    """Write both."""
    row = audit.execution_row(entry, at_ns, change=change, who=who, why=why)
    audit.put(connection, [row])
    if outbox:
        tell_event(connection, entry, at_ns)


def tell_event(connection: Connection, entry: Entry, at_ns: int) -> None:
    """Write the event."""
    event = event_of(entry, at_ns)
    if event is not None:
        enqueue(connection, event)


def audit_values(entry: Entry, at_ns: int) -> tuple[Any, ...]:
    """The audit row of an end, by `AUDIT`."""
    row, details = audit.execution(entry, at_ns)
    return (
        at_ns,
        row["who"],
        row["why"],
        row["tenant_id"],
        row["change"],
        details.decode(),
        row["digest"],
    )


def outbox_values(entry: Entry, at_ns: int) -> tuple[Any, ...] | None:
    """The event's row, by `OUTBOX`; nothing where nothing is to be told."""
    event = event_of(entry, at_ns)
    if event is None:
        return None
    tenant, key = storable(event.tenant), storable(event.call_id)
    return at_ns, tenant, event.kind, key, json_text(event)
