"""Given rows as tables of a database in memory, with their types."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, cast

import orjson

from toolgate.errors import ToolError

MOST_COLUMNS = 500
_CELLS = 5_000_000


def fill(database: sqlite3.Connection, tables: Mapping[str, Any]) -> dict[str, list[str]]:
    """Make them; the columns of each, by its name."""
    known: dict[str, list[str]] = {}
    names: set[str] = set()
    for name, rows in tables.items():
        if not name or "\0" in name or name.lower().startswith("sqlite_"):
            raise ToolError(f"A table cannot be named {name[:40]!r}. Give it another name.")
        if name.lower() in names:
            raise ToolError(f"Two tables are named {name[:40]!r}; large letters do not count.")
        names.add(name.lower())
        known[name] = _table(database, name, _records(name, rows))
    return known


def quoted(name: str) -> str:
    """As SQL writes a name."""
    return '"' + name.replace('"', '""') + '"'


def _records(name: str, rows: Any) -> list[dict[str, Any]]:
    if isinstance(rows, list):
        found = cast("list[Any]", rows)
        if all(isinstance(one, dict) for one in found):
            return cast("list[dict[str, Any]]", found)
        if not any(isinstance(one, (dict, list)) for one in found):
            return [{"value": one} for one in found]
    raise ToolError(
        f"The table {name[:40]!r} is not a list of objects. Give rows such as "
        '[{"id": 1, "name": "Ann"}].'
    )


def _table(database: sqlite3.Connection, name: str, records: list[dict[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(key for one in records for key in one)) or ["value"]
    if len(columns) > MOST_COLUMNS or len(columns) * len(records) > _CELLS:
        raise ToolError(
            f"The table {name[:40]!r} has {len(columns)} columns and {len(records):,} rows; "
            f"{MOST_COLUMNS} columns and {_CELLS:,} cells are the most. Give less."
        )
    lower = [one.lower() for one in columns]
    twice = next((one for one in columns if lower.count(one.lower()) > 1 or "\0" in one), None)
    if twice is not None:
        raise ToolError(
            f"The table {name[:40]!r} has the column {twice[:40]!r} in two spellings, or with a "
            "character that no name has; large letters do not count. Rename it."
        )
    kinds = [_kind(records, one) for one in columns]
    described = ", ".join(f"{quoted(one)} {kind}" for one, kind in zip(columns, kinds, strict=True))
    database.execute(f"CREATE TABLE {quoted(name)} ({described})")
    marks = ", ".join("?" * len(columns))
    database.executemany(
        f"INSERT INTO {quoted(name)} VALUES ({marks})",  # noqa: S608  names are quoted
        ([bound(one.get(column)) for column in columns] for one in records),
    )
    return columns


def _kind(records: list[dict[str, Any]], column: str) -> str:
    """A declaration where values would come back as something else; none keeps all as they are."""
    found: set[type] = {type(one[column]) for one in records if one.get(column) is not None}
    if found == {bool}:
        return "BOOLEAN"
    return "JSON" if found and found <= {list, dict} else ""


def bound(value: Any) -> Any:
    """A value as the database takes it: what has parts as JSON text, for its functions."""
    return orjson.dumps(value).decode() if isinstance(value, (list, dict)) else value


def _truth(raw: bytes) -> Any:
    return {b"1": True, b"0": False}.get(raw, raw.decode("utf-8", "replace"))


def _parts(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.decode("utf-8", "replace")


CONVERTERS: dict[str, Callable[[bytes], Any]] = {"BOOLEAN": _truth, "JSON": _parts}
