# ruff: noqa: S608
"""The statements of `calls_postgres`: with what a step brings with it, each is one transaction."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from toolgate.ledger.budget import FULL
from toolgate.ledger.state import State, before
from toolgate.store.ending import ENDING
from toolgate.store.records import tool_execution_log
from toolgate.store.rows import COLUMNS
from toolgate.store.told import AUDIT, OUTBOX
from toolgate.store.whose import gate

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint"
_SPANS = frozenset({"created_ns", "lease_ns"})
BEFORE = {state: [one.value for one in sorted(before(state))] for state in State}


def _claim(*, outbox: bool) -> str:
    """Behind the columns: the revision that it was decided on, or nothing, and its parts."""
    values = ", ".join(
        # Given as a span; the server knows what time it is.
        f"{_NOW} + ${at}::bigint" if column.name in _SPANS else f"${at}::{_type(column)}"
        for at, column in enumerate(tool_execution_log.columns, 1)
    )
    decided, parts = f"${len(COLUMNS) + 1}::bigint", f"${len(COLUMNS) + 2}::text[]"
    claimed = (
        f"INSERT INTO tool_execution_log ({', '.join(COLUMNS)}) SELECT {values} "
        f"WHERE {gate(COLUMNS.index('tenant_id') + 1)} AND ({decided} IS NULL OR NOT EXISTS "
        f"(SELECT FROM revisions WHERE name = ANY({parts}) AND value > {decided})) "
        "ON CONFLICT DO NOTHING RETURNING lease_ns, created_ns"
    )
    if not outbox:
        return claimed
    return (
        f"WITH claimed AS ({claimed}), "
        f"told AS ({_insert('outbox', OUTBOX, len(COLUMNS) + 3)} FROM claimed) "
        "SELECT lease_ns, created_ns FROM claimed"
    )


def _type(column: sa.Column[Any]) -> str:
    """A SELECT does not know the types of its parameters."""
    return column.type.compile(dialect=postgresql.dialect()).lower()


def _insert(table: str, columns: tuple[str, ...], first: int) -> str:
    """Parameters from `first` on, with their types: a SELECT does not know them."""
    types = {"at_ns": "bigint", "details": "text::json"}
    marks = (f"${at}::{types.get(name, 'text')}" for at, name in enumerate(columns, first))
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(marks)}"


def _end(*, outbox: bool, charges: bool) -> str:
    first = len(ENDING) + 1
    whose = gate(first + 3)
    sets = ", ".join(f"{name} = ${at}" for at, name in enumerate(ENDING, 1))
    ended = (
        f"UPDATE tool_execution_log SET {sets}, lease_ns = NULL, ended_ns = {_NOW}, "
        f"expires_ns = {_NOW} + ${first}::bigint, undo_until_ns = {_NOW} + ${first + 1}::bigint "
        # So that no other index but that of the ids comes into question, also of a table that is
        # still empty: the server keeps its first plan for long.
        f"WHERE call_id = ${first + 2} AND tenant_id || '' = ${first + 3} AND fence = ${first + 4} "
        f"AND state = ANY(${first + 5}::text[]) AND {whose} RETURNING wanted_by"
    )
    first += 6
    parts = [
        f"ended AS ({ended})",
        f"noted AS ({_insert('audit_log', AUDIT, first)} FROM ended)",
    ]
    first += len(AUDIT)
    if charges:
        parts.append(
            # As `ledger.budget.added`.
            f"spent AS (UPDATE budget_leases SET spent = CASE WHEN spent >= {FULL} THEN {FULL} "
            f"ELSE least(spent + charge.amount, {FULL}) END "
            f"FROM ended, unnest(${first}::text[], ${first + 1}::bigint[]) AS charge(id, amount) "
            # Said again: the server may begin with this table.
            f"WHERE budget_leases.id = charge.id AND {whose})"
        )
        first += 2
    if outbox:
        parts.append(f"told AS ({_insert('outbox', OUTBOX, first)} FROM ended)")
    return f"WITH {', '.join(parts)} SELECT wanted_by FROM ended"


CLAIMS = {outbox: _claim(outbox=outbox) for outbox in (False, True)}
ENDS = {
    (outbox, charges): _end(outbox=outbox, charges=charges)
    for outbox in (False, True)
    for charges in (False, True)
}
