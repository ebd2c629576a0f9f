"""Where a store can be: a file, memory, or an empty database of its own on a real PostgreSQL."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import asyncpg
from sqlalchemy import Connection

from tests.servers.postgres import Postgres as Server
from tests.thorough import some
from toolgate.store.database import HOUSE, Database
from toolgate.store.postgres import Postgres
from toolgate.store.sqlite import Sqlite

T = TypeVar("T")
FILE, MEMORY, POSTGRES = "sqlite file", "sqlite memory", "postgres"
# By a role that row security is in force for. In CI one suite goes there, the others now and then.
WALLED = "postgres, walled"
_NONE: tuple[str, ...] = ()
PLACES = (FILE, MEMORY, POSTGRES, *some(_NONE, (WALLED,)))
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


class Walled(Postgres):
    """A look of a test's own is for the whole house."""

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        return await super().read(work, tenant=tenant or HOUSE)

    async def ask(
        self, question: str, values: tuple[str, ...] = (), *, tenant: str = ""
    ) -> Sequence[Sequence[Any]]:
        return await super().ask(question, values, tenant=tenant or HOUSE)

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        return await super().write(work, tenant=tenant or HOUSE)


def open_at(url: str) -> Database:
    """As `storage.connect` does, from a url with an absolute path."""
    if "//walled@" in url:
        return Walled(url)
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
