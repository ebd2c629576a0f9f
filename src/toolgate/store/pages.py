"""Pure calls by the page: one row holds what a tenant's agents did between two writes."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import nlargest

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.ledger.entry import Entry, Whose
from toolgate.ledger.read import Read
from toolgate.store import audit
from toolgate.store.page import Page, entries_of
from toolgate.store.records import call_pages
from toolgate.store.text import storable
from toolgate.store.upsert import upsert

_AT_ONCE = 20
# When a call began stands in its id.
_ID = re.compile(r"call_([0-9a-f]{16})[0-9a-f]{12}")
# No call takes so long from its beginning to its page, also where the store was away; and no clock
# is set back so far in between.
_LONGEST_NS = 86_400 * 10**9
_SET_BACK_NS = 3_600 * 10**9
# Of one agent's calls so many pages are looked through: of a tenant that always calls, the last
# quarter of an hour of a node; of most, all.
_MOST_PAGES = 10_000


def write(connection: Connection, calls: Iterable[Entry | Read]) -> None:
    """A page for each tenant, and what the audit knows it by.

    Written again after a lost answer, it takes its own place.
    """
    by_tenant: dict[str, Page] = defaultdict(Page)
    for call in calls:
        tenant = call.grant.caller.tenant if isinstance(call, Read) else call.tenant
        by_tenant[tenant].add(call)
    rows = [
        {
            "tenant_id": storable(tenant),
            "first_call_id": page.first_call_id,
            "written_ns": clock.unix_ns(),
            "calls": len(page),
            "entries": page.written(),
        }
        for tenant, page in by_tenant.items()
    ]
    upsert(connection, call_pages, rows, change=("written_ns", "calls", "entries"))
    audit.put(connection, [audit.page_row(row) for row in rows])


def newest(connection: Connection, tenant: str, limit: int, of: Whose | None = None) -> list[Entry]:
    """The entries that began last, newest first; `of` one agent, on the latest pages."""
    found: list[Entry] = []
    column = call_pages.c
    theirs = [column.tenant_id == tenant]
    if of is not None:
        since_ns = since(connection, column.tenant_id == tenant, column.written_ns, _MOST_PAGES)
        theirs += [column.written_ns >= since_ns, _holds(connection, storable(of.agent))]
    pages = connection.execute(
        sa.select(column.entries, column.written_ns)
        .where(*theirs)
        .order_by(column.written_ns.desc())
        .execution_options(yield_per=_AT_ONCE)
    )
    with pages:
        for page, written_ns in pages:
            # A long call stands in a late page; but nothing began after its page was written.
            if len(found) == limit and found[-1].started_ns > written_ns:
                break
            wanted = (one for one in entries_of(page) if of is None or of.has(one))
            found = newest_of([*found, *wanted], limit)
    return found


def since(
    connection: Connection, theirs: sa.ColumnElement[bool], at: sa.Column[int], most: int
) -> int:
    """From when on there are so many rows: what is looked through for few of them has an end."""
    statement = sa.select(at).where(theirs).order_by(at.desc()).offset(most).limit(1)
    return connection.scalar(statement) or 0


def may_hold(call_id: str) -> bool:
    """Whether it looks like an id at all: for anything else no page is read."""
    return _ID.fullmatch(call_id) is not None


def find(connection: Connection, tenant: str, call_id: str) -> Entry | None:
    """One call of a tenant, on a page of the day after it began.

    The server looks for its id in the bytes of those; few are read.
    """
    told = _ID.fullmatch(call_id)
    if told is None:
        return None
    began_ns, column = int(told[1], 16), call_pages.c
    pages = connection.execute(
        sa.select(column.entries)
        .where(
            column.tenant_id == tenant,
            column.written_ns.between(began_ns - _SET_BACK_NS, began_ns + _LONGEST_NS),
            _holds(connection, call_id),
        )
        .order_by(column.written_ns)
        .execution_options(yield_per=_AT_ONCE)
    )
    with pages:
        return next(
            (entry for (page,) in pages for entry in entries_of(page) if entry.call_id == call_id),
            None,
        )


def decided(
    connection: Connection, decisions: Collection[str], since_ns: int
) -> list[tuple[str, str]]:
    """The calls since then that one of these decisions let pass, each with its decision."""
    # What began then was written later.
    pages = connection.execute(
        sa.select(call_pages.c.entries)
        .where(call_pages.c.written_ns >= since_ns)
        .execution_options(yield_per=_AT_ONCE)
    )
    with pages:
        return [
            (entry.call_id, entry.decision)
            for (page,) in pages
            for entry in entries_of(page)
            if entry.decision in decisions and entry.started_ns >= since_ns
        ]


def newest_of(entries: Iterable[Entry], limit: int) -> list[Entry]:
    """By when they began; ids decide between equals."""
    return nlargest(limit, entries, key=lambda entry: (entry.started_ns, entry.call_id))


def _holds(connection: Connection, text: str) -> sa.ColumnElement[bool]:
    """Whether a page has a text in it, which the server finds: texts stand there as they are."""
    has_it = sa.func.instr if connection.dialect.name != "postgresql" else _position
    return has_it(call_pages.c.entries, text.encode()) > 0


def _position(page: sa.ColumnElement[bytes], part: bytes) -> sa.ColumnElement[int]:
    return sa.func.position(sa.literal(part, sa.LargeBinary).op("IN")(page))
