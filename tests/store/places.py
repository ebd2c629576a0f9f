"""Where a store can be: a file, memory, or an empty database of its own on a real PostgreSQL."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
from sqlalchemy import Connection

from tests.servers.postgres import Postgres as Server
from toolgate.store.database import Database
from toolgate.store.postgres import Postgres
from toolgate.store.sqlite import Sqlite

FILE, MEMORY, POSTGRES = "sqlite file", "sqlite memory", "postgres"
PLACES = (FILE, MEMORY, POSTGRES)
# Those that another process can reach, and that can be taken away.
SHARED = (FILE, POSTGRES)


@asynccontextmanager
async def fresh_url(server: Server) -> AsyncGenerator[str]:
    """The url of an empty database, dropped afterwards."""
    name = f"t{uuid4().hex}"
    owner = await asyncpg.connect(server.dsn)
    try:
        await owner.execute(f"CREATE DATABASE {name}")
        yield server.dsn.removesuffix("/postgres") + f"/{name}"
        await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await owner.close()


def open_at(url: str) -> Database:
    """As `bootstrap.connect` does, from a url with an absolute path."""
    if url.startswith("postgresql:"):
        return Postgres(url)
    path = url.removeprefix("sqlite:///")
    return Sqlite(None if path == ":memory:" else Path(path))


@asynccontextmanager
async def busy(database: Database) -> AsyncGenerator[None]:
    """SQLite's one writer has something else to do until the block ends."""
    begun, free = threading.Event(), threading.Event()

    def work(_: Connection) -> None:
        begun.set()
        free.wait()

    working = asyncio.ensure_future(database.write(work))
    try:
        await asyncio.to_thread(begun.wait)
        yield
    finally:
        free.set()
        await working
