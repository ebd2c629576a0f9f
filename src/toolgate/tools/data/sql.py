"""SQL over given tables, in a database that is in memory and gone afterwards. For a worker."""

import contextlib
import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from toolgate import clock
from toolgate.errors import ToolError
from toolgate.tools.data.permitting import Permit
from toolgate.tools.data.tables import CONVERTERS, MOST_COLUMNS, bound, fill

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 16_000_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: MOST_COLUMNS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 20,
}
_HEAP = 256 * 1024 * 1024
_LARGEST = 4_000_000
_STATEMENTS = 50
_INSTRUCTIONS = 10_000
_COLUMN = re.compile(r"no such column: (.+)")
_TABLE = re.compile(r"no such table: (.+)")
_NEAR = re.compile(r'near "(.+)": syntax error', re.DOTALL)


def answered(
    *,
    query: str,
    tables: dict[str, Any],
    params: list[Any] | dict[str, Any],
    writes: bool,
    limit: int,
    seconds: float,
) -> dict[str, Any]:
    """What the last statement gives."""
    if "\0" in query:
        raise ToolError("The query holds a NUL character, which SQL has not. Leave it out.")
    for name, converter in CONVERTERS.items():
        sqlite3.register_converter(name, converter)
    database = sqlite3.connect(
        ":memory:", detect_types=sqlite3.PARSE_DECLTYPES, isolation_level=None
    )
    with contextlib.closing(database):
        database.execute(f"PRAGMA hard_heap_limit={_HEAP}")
        database.execute("PRAGMA temp_store=MEMORY")
        try:
            known = fill(database, tables)
        except OverflowError:
            raise ToolError(
                "A table holds a whole number beyond 64 bits, which SQL has not. Give it as text, "
                "or with a decimal point."
            ) from None
        for kind, most in _LIMITS.items():
            database.setlimit(kind, most)
        permit = Permit(writes=writes)
        database.set_authorizer(permit)
        end = clock.monotonic_ns() + int(seconds * 1e9)
        database.set_progress_handler(lambda: clock.monotonic_ns() > end, _INSTRUCTIONS)
        try:
            return _run(database, query, params, limit, writes=writes)
        except sqlite3.Error as error:
            raise ToolError(_told(error, permit, query, known, seconds)) from None
        except OverflowError:
            raise ToolError("A parameter is a number that is too large for SQL.") from None


def _run(
    database: sqlite3.Connection,
    query: str,
    params: list[Any] | dict[str, Any],
    limit: int,
    *,
    writes: bool,
) -> dict[str, Any]:
    statements = _statements(query)
    if len(statements) != 1 and not writes:
        raise ToolError("Give one statement, such as SELECT …; several need writes: true.")
    given: Any = (
        {name: bound(one) for name, one in params.items()}
        if isinstance(params, dict)
        else [bound(one) for one in params]
    )
    before = database.total_changes
    cursor = database.cursor()
    for number, statement in enumerate(statements):
        is_last = number == len(statements) - 1
        cursor.execute(statement, given if is_last or isinstance(params, dict) else ())
    answer = _rows(cursor, limit)
    if writes:
        answer["changes"] = database.total_changes - before
    return answer


def _statements(query: str) -> list[str]:
    """One after the other: a semicolon in a text or a comment parts nothing."""
    found: list[str] = []
    begun = ""
    for piece in re.split("(?<=;)", query):
        begun += piece
        if sqlite3.complete_statement(begun):
            found.append(begun)
            begun = ""
        if len(found) > _STATEMENTS or len(begun) > 100_000:
            raise ToolError(f"There are more than {_STATEMENTS} statements. Give fewer.")
    return [one for one in [*found, begun] if _says_something(one)]


def _says_something(statement: str) -> bool:
    return bool(re.sub(r"--[^\n]*|/\*.*?\*/|[\s;]", "", statement, flags=re.DOTALL))


def _rows(cursor: sqlite3.Cursor, limit: int) -> dict[str, Any]:
    columns = _unique([one[0] for one in cursor.description or ()])
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    size = 0
    is_cut = False
    for row in cursor:
        if len(rows) >= limit or size > _LARGEST:
            is_cut = True
            break
        rows.append({name: _plain(one, notes) for name, one in zip(columns, row, strict=True)})
        size += sum(len(one) if isinstance(one, (str, bytes)) else 8 for one in row)
    answer: dict[str, Any] = {
        "columns": columns,
        "rows": rows,
        "count": len(rows),
        "truncated": is_cut,
    }
    if is_cut:
        notes.append(f"There are more rows than {len(rows)}. Add LIMIT and OFFSET, or aggregate.")
    return answer | ({"notes": list(dict.fromkeys(notes))} if notes else {})


def _unique(names: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for one in names:
        name, copy = one, 1
        while name in found:
            copy += 1
            name = f"{one}_{copy}"
        found[name] = None
    return list(found)


def _plain(value: Any, notes: list[str]) -> Any:
    if isinstance(value, bytes):
        notes.append("Binary values are shown as hexadecimal digits.")
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        notes.append("A number that is too large is null.")
        return None
    return value


def _told(
    error: sqlite3.Error,
    permit: Permit,
    query: str,
    known: Mapping[str, list[str]],
    seconds: float,
) -> str:
    """What to write instead."""
    text = str(error)
    if permit.refused:
        return permit.refused
    if text == "interrupted":
        return f"The query was not done in {seconds:g} seconds and was ended. Join or select less."
    if isinstance(error, sqlite3.DataError) or "too big" in text or "out of memory" in text:
        return "The query makes values that are too large. Select less."
    if found := _TABLE.match(text):
        return f"There is no table {found[1][:60]}.{_meant(found[1], known)} {_described(known)}"
    if found := _COLUMN.match(text):
        columns = [column for one in known.values() for column in one]
        name = found[1].rpartition(".")[2]
        return (
            f"There is no column {found[1][:60]}.{_meant(name, columns)} {_described(known)} "
            "Texts are written in single quotes."
        )
    if found := _NEAR.match(text):
        at = [match.start() for match in re.finditer(re.escape(found[1]), query)]
        where = f" at column {at[0] + 1}" if len(at) == 1 else ""
        return f"The SQL is not right near {found[1][:40]!r}{where}. It is SQLite's SQL."
    return f"The SQL does not work: {text[:200].rstrip('.')}."


def _meant(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    lower = {one.lower(): one for one in known}
    near = get_close_matches(name.strip("\"'").lower(), lower, n=1)
    return f" Did you mean {lower[near[0]]}?" if near else ""


def _described(known: Mapping[str, list[str]]) -> str:
    if not known:
        return "No tables are given."
    told = "; ".join(f"{name} ({', '.join(columns[:20])})" for name, columns in known.items())
    return f"There are: {told[:600]}."
