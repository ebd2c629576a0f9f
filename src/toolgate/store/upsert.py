"""Insert, or change the row that is there: the same words for both servers."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    change: Sequence[str] = (),
) -> None:
    """Insert rows; where the primary key is taken, set the columns named in `change` (or none)."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    keys = list(table.primary_key.columns)
    if change:
        statement = statement.on_conflict_do_update(
            index_elements=keys, set_={column: statement.excluded[column] for column in change}
        )
    else:
        statement = statement.on_conflict_do_nothing(index_elements=keys)
    if rows:
        connection.execute(statement, [dict(row) for row in rows])
