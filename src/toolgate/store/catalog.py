"""Specs in the `tool_catalog` table: kept up to date, never against an operator's flag."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.store.database import Database
from toolgate.store.revision import bump
from toolgate.store.tables import tool_catalog
from toolgate.store.upsert import upsert


class Row(NamedTuple):
    """A definition in the native layout, and who it belongs to (`agent`, `executor`, …)."""

    definition: Mapping[str, Any]
    source: str


class CatalogTable:
    """Definitions that live in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rows(self) -> list[Row]:
        """Every definition, by name."""

        def work(connection: Connection) -> list[Row]:
            column = tool_catalog.c
            found = connection.execute(
                sa.select(column.definition, column.source)
                .where(column.definition.is_not(None))
                .order_by(column.name)
            )
            return [Row(definition, source) for definition, source in found]

        return await self._database.read(work)

    async def seed(self, rows: Sequence[Row]) -> None:
        """Put definitions in. What an operator switched on or off stays as it is."""
        now = clock.utc_now()
        values = [
            {
                "name": row.definition["name"],
                "description": row.definition.get("description", ""),
                "params": row.definition.get("input_schema", {}),
                "source": row.source,
                "definition": dict(row.definition),
                "created_at": now,
                "updated_at": now,
            }
            for row in rows
        ]

        def work(connection: Connection) -> None:
            found = connection.execute(sa.select(tool_catalog.c.name, tool_catalog.c.definition))
            stored = {name: definition for name, definition in found}  # noqa: C416  a Row is no pair
            changed = [
                value for value in values if stored.get(value["name"]) != value["definition"]
            ]
            if changed:
                columns = ("description", "params", "source", "definition", "updated_at")
                bump(connection)
                upsert(connection, tool_catalog, changed, change=columns)

        await self._database.write(work)
