"""Proves the audit log: every record, seal and page is looked at again.

What it says of calls and approvals is held against their rows by `store.witness`.
"""

import hashlib
import json
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.errors import InvalidRequest
from toolgate.store import tables
from toolgate.store.audit import digest_of
from toolgate.store.records import (
    approvals,
    audit_log,
    audit_seals,
    call_pages,
    tool_execution_log,
)
from toolgate.store.seals import seal_hash
from toolgate.store.witness import Witness
from toolgate.tenancy.audit import PAGE, Anchor, Proof, Seal

_AT_ONCE = 500
# One is enough to know; a few show what kind of thing happened.
_MOST_TOLD = 20
_Row = dict[str, Any]


def tenants(connection: Connection) -> list[str]:
    """Whose chains there are, by name; the one that concerns everyone has none.

    Also of those who have calls and no chain: somebody could have removed all of it.
    """
    found = {
        tenant
        for table in (audit_log, audit_seals, tool_execution_log, approvals, call_pages)
        for (tenant,) in connection.execute(sa.select(table.c.tenant_id).distinct())
    }
    return sorted(found)


def anchors(connection: Connection, tenant: str | None = None) -> list[Anchor]:
    """The newest link of each chain."""
    if tenant is not None:
        check_tenant(connection, tenant)
    column = audit_seals.c
    last = sa.select(column.tenant_id, sa.func.max(column.number).label("number"))
    if tenant is not None:
        last = last.where(column.tenant_id == tenant)
    newest = last.group_by(column.tenant_id).subquery()
    found = connection.execute(
        sa.select(column.tenant_id, column.number, column.hash).join(
            newest,
            (column.tenant_id == newest.c.tenant_id) & (column.number == newest.c.number),
        )
    )
    return sorted((Anchor(*row) for row in found), key=lambda one: one.tenant)


def seals(connection: Connection, tenant: str) -> list[Seal]:
    """A tenant's links, the first one first."""
    found = connection.execute(
        sa.select(audit_seals)
        .where(audit_seals.c.tenant_id == tenant)
        .order_by(audit_seals.c.number)
    )
    return [
        Seal(**{"tenant" if name == "tenant_id" else name: part for name, part in row.items()})
        for row in found.mappings()
    ]


def verify(
    connection: Connection, *, tenant: str | None = None, kept: Collection[str] = ()
) -> Proof:
    """Look at everything of one tenant, or of all. `kept`: anchors that have to be in a chain."""
    if tenant is not None:
        check_tenant(connection, tenant)
    records = links = unsealed = pages = 0
    problems: list[str] = []
    hashes: set[str] = set()
    for name in tenants(connection) if tenant is None else [tenant]:
        chain = _Chain(connection, name)
        problems += chain.problems()
        problems += chain.witness.problems(connection)
        problems += _pages(connection, name)
        records += chain.records
        unsealed += chain.unsealed
        links += len(chain.seals)
        pages += len(chain.pages)
        hashes |= {f"{one.number}:{one.hash}" for one in chain.seals}
        hashes |= {one.hash for one in chain.seals}
    problems += [
        f"anchor {anchor} is in no chain: the log was cut off or written anew after it was kept"
        for anchor in kept
        if anchor not in hashes
    ]
    return Proof(
        records=records,
        seals=links,
        pages=pages,
        unsealed=unsealed,
        problems=tuple(problems[:_MOST_TOLD]),
    )


def check_tenant(connection: Connection, tenant: str) -> None:
    """A proof about nobody would hold, and a list of anchors or an export be empty: they would say
    nothing.
    """
    known = sa.select(tables.tenants.c.id).where(tables.tenants.c.id == tenant)
    if connection.execute(known).first() is None and tenant not in tenants(connection):
        raise InvalidRequest(
            f"There is no tenant {tenant!r}, and nothing of one on record. Nothing was looked at: "
            "list the tenants to see which there are."
        )


class _Chain:
    """One tenant's records against its seals."""

    def __init__(self, connection: Connection, tenant: str) -> None:
        self._connection = connection
        self._whose = f"of tenant {tenant!r}" if tenant else "that concern everyone"
        self._tenant = tenant
        self.seals = seals(connection, tenant)
        self.records = self.unsealed = 0
        self.pages: set[str] = set()
        self.witness = Witness(tenant)

    def problems(self) -> Iterator[str]:
        """In the order of the chain."""
        missing = {link.number: link for link in self.seals}
        yield from self._gaps()
        before = {one.number: other.hash for other, one in zip(self.seals, self.seals[1:])}  # noqa: B905
        rows = _rows(self._connection, self._tenant)
        for number, group in groupby(rows, key=lambda row: row["seal"]):
            held: list[tuple[int, str]] = []
            for row in group:
                yield from self._record(row)
                held.append((row["id"], row["digest"]))
            if number is None:
                self.unsealed += len(held)
                continue
            link = missing.pop(number, None)
            if link is None:
                yield f"seal {number} of the records {self._whose} is gone; {len(held)} name it"
            elif held and not _holds(link, before.get(number, ""), held):
                yield (
                    f"seal {number} of the records {self._whose} does not hold: it was made for "
                    f"{link.records} records, {link.first_id} to {link.last_id}; one of them was "
                    "changed, removed, moved or put between"
                )
        for number in missing:
            yield f"seal {number} of the records {self._whose} has lost all its records"

    def _gaps(self) -> Iterator[str]:
        for expected, link in enumerate(self.seals, 1):
            if link.number != expected:
                yield f"seal {expected} of the records {self._whose} is gone"
                return

    def _record(self, row: _Row) -> Iterator[str]:
        self.records += 1
        if row["details"] is None:
            yield f"record {row['id']} {self._whose} ({row['change']}) cannot be read"
            return
        self.witness.hear(row)
        if row["change"] == PAGE:
            self.pages.add(row["details"].get("first_call_id", ""))
        # Of an older version's record, the digest is made when it is sealed.
        if row["digest"] != digest_of(row) and (row["digest"] or row["seal"] is not None):
            yield f"record {row['id']} {self._whose} ({row['change']}) was changed"


def _holds(link: Seal, before: str, held: list[tuple[int, str]]) -> bool:
    shape = len(held), held[0][0], held[-1][0]
    return shape == (link.records, link.first_id, link.last_id) and link.hash == seal_hash(
        before, link.tenant, link.number, link.at_ns, held
    )


def _pages(connection: Connection, tenant: str) -> Iterator[str]:
    """The pages of calls, against what was noted when they were written.

    Those of an older version were noted when the store was brought to this one.
    """
    noted: dict[str, tuple[Any, ...]] = {}
    for row in _rows(connection, tenant, change=PAGE):
        details: _Row = row["details"] or {}
        # Written again after a lost answer, a page takes its own place.
        noted[str(details.get("first_call_id"))] = (
            details.get("sha256"),
            details.get("calls"),
            row["at_ns"],
        )
    pages = connection.execute(
        sa.select(call_pages)
        .where(call_pages.c.tenant_id == tenant)
        .execution_options(yield_per=_AT_ONCE)
    )
    for page in pages.mappings():
        said = noted.pop(page["first_call_id"], None)
        sha256 = hashlib.sha256(page["entries"]).hexdigest()
        if said is None:
            yield f"the page of calls {page['first_call_id']} was put there by another hand"
        elif said != (sha256, page["calls"], page["written_ns"]):
            yield f"the page of calls {page['first_call_id']} was changed"
    for first_call_id in noted:
        yield f"the page of calls {first_call_id} is gone"


def _rows(connection: Connection, tenant: str, change: str = "") -> Iterator[_Row]:
    column = audit_log.c
    others = [one for one in column if one is not column.details]
    asked = sa.select(*others, sa.cast(column.details, sa.Text).label("details"))
    asked = asked.where(column.tenant_id == tenant)
    if change:
        asked = asked.where(column.change == change)
    # What is not sealed yet comes last, on either server.
    asked = asked.order_by(column.seal.is_(None), column.seal, column.id)
    found = connection.execute(asked.execution_options(yield_per=_AT_ONCE))
    for row in found.mappings():
        yield {**row, "details": details_of(row["details"])}


def details_of(text: str) -> _Row | None:
    """`None` where somebody has made it something else."""
    try:
        details = json.loads(text, object_pairs_hook=_once)
    except ValueError:
        return None
    return cast("_Row", details) if isinstance(details, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> _Row:
    """Of a name that is there twice, readers differ in which they believe."""
    details = dict(pairs)
    if len(details) != len(pairs):
        raise ValueError("a name is there twice")
    return details
