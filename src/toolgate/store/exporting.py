"""The audit log put out for others, part by part: enough of it to verify it elsewhere.

A part begins where the last one ended, by an index, and holds whole seals: so an export of any
length needs little memory and no transaction that lasts.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store.proof import check_tenant, details_of
from toolgate.store.records import audit_log, audit_seals
from toolgate.tenancy.audit import Mark

_Row = dict[str, Any]
_RECORD = ("id", "at_ns", "who", "why", "change", "details", "digest", "seal")
_SEAL = ("number", "at_ns", "records", "first_id", "last_id", "hash")


class Part(NamedTuple):
    """Rows of either table in their order, and where the next part begins."""

    rows: list[_Row]
    following: Mark | None


def part(connection: Connection, tenant: str | None, after: Mark | None, most: int) -> Part:
    """About so many: a seal is never parted from its records."""
    if after is None and tenant is not None:
        check_tenant(connection, tenant)
    mark = after or (_next(connection, None) if tenant is None else Mark(tenant))
    if mark is not None and tenant is not None:
        # A mark says where, and never whose.
        mark = Mark(tenant, mark.seal, mark.beyond)
    rows: list[_Row] = []
    while mark is not None and len(rows) < most:
        if mark.beyond is None:
            links = _links(connection, mark, most - len(rows))
            rows += _sealed(connection, mark.tenant, links)
            last = links[-1]["number"] if links else mark.seal
            mark = Mark(mark.tenant, last, None if links else 0)
            continue
        room = most - len(rows)
        found = _beyond(connection, mark, room)
        rows += found
        if len(found) == room:
            mark = Mark(mark.tenant, mark.seal, found[-1]["id"])
        else:
            mark = _next(connection, mark.tenant) if tenant is None else None
    return Part(rows, mark)


def lines(rows: Iterable[_Row]) -> Iterator[str]:
    """As JSON. In ASCII no reader takes a sign in a name for the end of a line."""
    for row in rows:
        kind, named = ("seal", _SEAL) if "hash" in row else ("record", _RECORD)
        told = {"kind": kind, "tenant": row["tenant_id"], **{name: row[name] for name in named}}
        if kind == "record":
            told["details"] = details_of(row["details"])
        yield json.dumps(told, separators=(",", ":"))


def _next(connection: Connection, after: str | None) -> Mark | None:
    """The next tenant that has anything on record."""
    found: list[str] = []
    for table in (audit_log, audit_seals):
        asked = sa.select(sa.func.min(table.c.tenant_id))
        if after is not None:
            asked = asked.where(table.c.tenant_id > after)
        first = connection.execute(asked).scalar()
        found += [] if first is None else [first]
    return Mark(min(found)) if found else None


def _links(connection: Connection, mark: Mark, most: int) -> list[_Row]:
    """The seals behind this one, as long as they and their records are no more than that."""
    column = audit_seals.c
    asked = sa.select(audit_seals).where(column.tenant_id == mark.tenant, column.number > mark.seal)
    taken: list[_Row] = []
    size = 0
    for row in connection.execute(asked.order_by(column.number).limit(most)).mappings():
        size += max(row["records"], 0) + 1
        if taken and size > most:
            break
        taken.append(dict(row))
    return taken


def _sealed(connection: Connection, tenant: str, links: list[_Row]) -> Iterator[_Row]:
    if not links:
        return
    column = audit_log.c
    asked = _records(tenant).where(
        # By the ids first: there is an index of them, and none of seals.
        column.id.between(
            min(link["first_id"] for link in links), max(link["last_id"] for link in links)
        ),
        column.seal.between(links[0]["number"], links[-1]["number"]),
    )
    found = connection.execute(asked.order_by(column.seal, column.id)).mappings()
    held = {number: list(rows) for number, rows in groupby(found, key=lambda row: row["seal"])}
    for link in links:
        yield from map(dict, held.get(link["number"], ()))
        yield link


def _beyond(connection: Connection, mark: Mark, most: int) -> list[_Row]:
    """Records that were just written; and those that stand where no seal has put them."""
    column, link = audit_log.c, audit_seals.c
    holds = sa.exists().where(
        link.tenant_id == column.tenant_id,
        link.number == column.seal,
        column.id.between(link.first_id, link.last_id),
    )
    # One that was sealed since the last look belongs to a later export, with its seal.
    asked = _records(mark.tenant).where(column.id > (mark.beyond or 0), ~holds)
    found = connection.execute(asked.order_by(column.id).limit(most)).mappings()
    return [dict(row) for row in found]


def _records(tenant: str) -> "sa.Select[Any]":
    column = audit_log.c
    others = [one for one in column if one is not column.details]
    told = sa.cast(column.details, sa.Text).label("details")
    return sa.select(*others, told).where(column.tenant_id == tenant)
