"""Insert, or change the row that is there: the same words for both servers."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite


def upsert(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    change: Sequence[str] = (),
    by: Sequence[str] = (),
) -> None:
    """Insert rows; where the primary key is taken, set the columns named in `change` (or none).

    `by`: the columns of another key that counts instead.
    """
    statement = _insert(connection, table)
    keys = [table.c[name] for name in by] or list(table.primary_key.columns)
    if change:
        statement = statement.on_conflict_do_update(
            index_elements=keys, set_={column: statement.excluded[column] for column in change}
        )
    else:
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    if rows:
        connection.execute(statement, [dict(row) for row in rows])


def inserted(connection: Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row, unless its primary key is taken; whether it was."""
    keys = list(table.primary_key.columns)
    statement = _insert(connection, table).on_conflict_do_nothing(index_elements=keys)
    return connection.execute(statement.values(dict(row))).rowcount == 1


def _insert(connection: Connection, table: sa.Table) -> sqlite.Insert:
    if connection.dialect.name != "postgresql":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415  a tenth of a start on SQLite

    # Both have the same words for a conflict; only their types are strangers to each other.
    return cast("sqlite.Insert", postgresql.insert(table))
