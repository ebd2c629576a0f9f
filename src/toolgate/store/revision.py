"""The world's counter, and beside each part of the world the count at which it last changed."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store import tables
from toolgate.store.database import Database
from toolgate.store.upsert import upsert
from toolgate.tenancy.parts import EVERYONE

WORLD = "world"
# The driver's own words: every side effect asks, and a statement that is built anew costs more
# than its answer.
_READ = f"SELECT value FROM revisions WHERE name = '{WORLD}'"  # noqa: S608  a constant
_RAISE = (
    f"INSERT INTO revisions (name, value) VALUES ('{WORLD}', 1) "  # noqa: S608  a constant
    "ON CONFLICT (name) DO UPDATE SET value = revisions.value + 1 RETURNING value"
)


def current(connection: Connection) -> int:
    """How many times the world was changed."""
    return connection.exec_driver_sql(_READ).scalar() or 0


def newest(connection: Connection, parts: Collection[str]) -> int:
    """The count at which any of these parts changed last."""
    column = tables.revisions.c
    last = sa.select(sa.func.max(column.value)).where(column.name.in_(parts))
    return connection.execute(last).scalar() or 0


def newest_seen(driver: sqlite3.Connection, parts: Sequence[str]) -> int:
    """The same on SQLite's driver itself: every claim asks."""
    marks = ", ".join("?" * len(parts))
    last = f"SELECT max(value) FROM revisions WHERE name IN ({marks})"  # noqa: S608  marks only
    return driver.execute(last, parts).fetchone()[0] or 0


async def now(database: Database) -> int:
    """The same, by itself."""
    rows = await database.ask(_READ)
    return rows[0][0] if rows else 0


def bump(connection: Connection, parts: Iterable[str] = (EVERYONE,)) -> int:
    """The world is a new one. First in a transaction: changes wait here, and never cross."""
    value: int = connection.exec_driver_sql(_RAISE).scalar_one()
    rows = [{"name": part, "value": value} for part in parts]
    upsert(connection, tables.revisions, rows, change=("value",))
    return value
