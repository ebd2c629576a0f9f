# ruff: noqa: S608
"""The statements of `calls_postgres`: with what a step brings with it, each is one transaction."""

from toolgate.ledger.state import State, before
from toolgate.store.ending import ENDING
from toolgate.store.rows import COLUMNS
from toolgate.store.told import AUDIT, OUTBOX

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint"
BEFORE = {state: [one.value for one in sorted(before(state))] for state in State}


def _claim(*, outbox: bool) -> str:
    values = ", ".join(
        # Given as a span; the server knows what time it is.
        f"{_NOW} + ${at}::bigint" if name == "lease_ns" else f"${at}"
        for at, name in enumerate(COLUMNS, 1)
    )
    claimed = (
        f"INSERT INTO tool_execution_log ({', '.join(COLUMNS)}) VALUES ({values}) "
        "ON CONFLICT DO NOTHING RETURNING lease_ns"
    )
    if not outbox:
        return claimed
    return (
        f"WITH claimed AS ({claimed}), "
        f"told AS ({_insert('outbox', OUTBOX, len(COLUMNS) + 1)} FROM claimed) "
        "SELECT lease_ns FROM claimed"
    )


def _insert(table: str, columns: tuple[str, ...], first: int) -> str:
    """Parameters from `first` on, with their types: a SELECT does not know them."""
    types = {"at_ns": "bigint", "details": "text::json"}
    marks = (f"${at}::{types.get(name, 'text')}" for at, name in enumerate(columns, first))
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(marks)}"


def _end(*, outbox: bool, charges: bool) -> str:
    first = len(ENDING) + 1
    sets = ", ".join(f"{name} = ${at}" for at, name in enumerate(ENDING, 1))
    ended = (
        f"UPDATE tool_execution_log SET {sets}, lease_ns = NULL, ended_ns = {_NOW}, "
        f"expires_ns = {_NOW} + ${first}::bigint, undo_until_ns = {_NOW} + ${first + 1}::bigint "
        f"WHERE call_id = ${first + 2} AND tenant_id = ${first + 3} AND fence = ${first + 4} "
        f"AND state = ANY(${first + 5}::text[]) RETURNING wanted_by"
    )
    first += 6
    parts = [
        f"ended AS ({ended})",
        f"noted AS ({_insert('audit_log', AUDIT, first)} FROM ended)",
    ]
    first += len(AUDIT)
    if charges:
        parts.append(
            "spent AS (UPDATE budget_leases SET spent = spent + charge.amount "
            f"FROM ended, unnest(${first}::text[], ${first + 1}::bigint[]) AS charge(id, amount) "
            "WHERE budget_leases.id = charge.id)"
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
