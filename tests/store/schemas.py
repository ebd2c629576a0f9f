"""A database looked at from below: its tables, its versions, and statements of one's own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import sqlalchemy as sa
from sqlalchemy import Connection

from tests.store.places import open_at
from toolgate.store.database import Database

Schema = dict[str, list[str]]


def schema(connection: Connection) -> Schema:
    """Every table with its columns."""
    inspector = sa.inspect(connection)
    return {
        table: sorted(column["name"] for column in inspector.get_columns(table))
        for table in inspector.get_table_names()
    }


def versions(connection: Connection) -> list[str]:
    return list(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars())


def run(*statements: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return work


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Database]:
    """As it is: nothing is migrated."""
    database = open_at(url)
    try:
        yield database
    finally:
        await database.close()
