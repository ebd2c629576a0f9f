"""The world's counter, and beside each part of the world the count at which it last changed."""

import sqlite3
from collections.abc import Iterable

from sqlalchemy import Connection

from toolgate.store import tables
from toolgate.store.database import Database
from toolgate.store.upsert import upsert
from toolgate.tenancy.parts import EVERYONE

WORLD = "world"
# The driver's own words: every side effect asks, and a statement that is built anew costs more
# than its answer.
READ = f"SELECT value FROM revisions WHERE name = '{WORLD}'"  # noqa: S608  a constant
_RAISE = (
    f"INSERT INTO revisions (name, value) VALUES ('{WORLD}', 1) "  # noqa: S608  a constant
    "ON CONFLICT (name) DO UPDATE SET value = revisions.value + 1 RETURNING value"
)


def current(connection: Connection) -> int:
    """How many times the world was changed."""
    return connection.exec_driver_sql(READ).scalar() or 0


def seen(driver: sqlite3.Connection) -> int:
    """The same, in the middle of a transaction of SQLite's."""
    row = driver.execute(READ).fetchone()
    return 0 if row is None else row[0]


async def now(database: Database) -> int:
    """The same, by itself."""
    rows = await database.ask(READ)
    return rows[0][0] if rows else 0


def bump(connection: Connection, parts: Iterable[str] = (EVERYONE,)) -> int:
    """The world is a new one. First in a transaction: changes wait here, and never cross."""
    value: int = connection.exec_driver_sql(_RAISE).scalar_one()
    rows = [{"name": part, "value": value} for part in parts]
    upsert(connection, tables.revisions, rows, change=("value",))
    return value
