"""Pure calls by the page: one row holds what a tenant's agents did between two writes."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import nlargest

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.ledger.entry import Entry
from toolgate.spec.document import sha256
from toolgate.store import audit
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
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode
_Packed = tuple[object, ...]


def write(connection: Connection, entries: Iterable[Entry]) -> None:
    """A page for each tenant, and what the audit knows it by.

    Written again after a lost answer, it takes its own place.
    """
    by_tenant: dict[str, list[_Packed]] = defaultdict(list)
    for entry in entries:
        by_tenant[entry.tenant].append(_packed(entry))
    rows = [
        {
            "tenant_id": storable(tenant),
            "first_call_id": packed[0][0],
            "written_ns": clock.unix_ns(),
            "calls": len(packed),
            "entries": _page(packed),
        }
        for tenant, packed in by_tenant.items()
    ]
    upsert(connection, call_pages, rows, change=("written_ns", "calls", "entries"))
    audit.put(connection, [audit.page_row(row) for row in rows])


def newest(connection: Connection, tenant: str, limit: int) -> list[Entry]:
    """The entries that began last, newest first."""
    found: list[Entry] = []
    column = call_pages.c
    pages = connection.execute(
        sa.select(column.entries, column.written_ns)
        .where(column.tenant_id == tenant)
        .order_by(column.written_ns.desc())
        .execution_options(yield_per=_AT_ONCE)
    )
    with pages:
        for page, written_ns in pages:
            # A long call stands in a late page; but nothing began after its page was written.
            if len(found) == limit and found[-1].started_ns > written_ns:
                break
            found = newest_of([*found, *_decode(page)], limit)
    return found


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
    # Texts stand in a page as they are.
    has_it = sa.func.instr if connection.dialect.name != "postgresql" else _position
    pages = connection.execute(
        sa.select(column.entries)
        .where(
            column.tenant_id == tenant,
            column.written_ns.between(began_ns - _SET_BACK_NS, began_ns + _LONGEST_NS),
            has_it(column.entries, call_id.encode()) > 0,
        )
        .order_by(column.written_ns)
        .execution_options(yield_per=_AT_ONCE)
    )
    with pages:
        return next(
            (entry for (page,) in pages for entry in _decode(page) if entry.call_id == call_id),
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
            for entry in _decode(page)
            if entry.decision in decisions and entry.started_ns >= since_ns
        ]


def newest_of(entries: Iterable[Entry], limit: int) -> list[Entry]:
    """By when they began; ids decide between equals."""
    return nlargest(limit, entries, key=lambda entry: (entry.started_ns, entry.call_id))


def _position(page: sa.ColumnElement[bytes], part: bytes) -> sa.ColumnElement[int]:
    return sa.func.position(sa.literal(part, sa.LargeBinary).op("IN")(page))


def _page(packed: list[_Packed]) -> bytes:
    try:
        return _encode(packed)
    except UnicodeEncodeError:
        # One entry that cannot be written must not keep all the others waiting.
        return _encode(
            [[storable(part) if type(part) is str else part for part in one] for one in packed]
        )


def _packed(entry: Entry) -> _Packed:
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
        entry.args_hash or sha256(entry.args),
        entry.decision,
        entry.chain,
        entry.chain_index,
        entry.planned,
    )
