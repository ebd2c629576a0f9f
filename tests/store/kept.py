"""A port's twin, or its table on each of the places, as one fixture asks for them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.places import FILE, MEMORY, PLACES, fresh_url, open_at
from toolgate.store.database import Database
from toolgate.store.migrate import migrate

T = TypeVar("T")
TWIN = "twin"
KINDS = (TWIN, *PLACES)


@asynccontextmanager
async def kept(
    request: pytest.FixtureRequest,
    folder: Path,
    twin: Callable[[], T],
    table: Callable[[Database], T],
) -> AsyncGenerator[T]:
    if request.param == TWIN:
        yield twin()
    elif request.param in {FILE, MEMORY}:
        place = ":memory:" if request.param == MEMORY else str(folder / "toolgate.db")
        async with _opened(f"sqlite:///{place}") as database:
            yield table(database)
    else:
        server: Server = request.getfixturevalue("postgres")
        async with fresh_url(server) as url, _opened(url) as database:
            yield table(database)


@asynccontextmanager
async def _opened(url: str) -> AsyncGenerator[Database]:
    database = open_at(url)
    try:
        await migrate(database)
        yield database
    finally:
        await database.close()
