"""A port's twin, or its table on each of the places, as one fixture asks for them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.blank import put_blank
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, MEMORY, PLACES, WALLED, open_at
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
    elif request.param == MEMORY:
        async with _opened("sqlite:///:memory:") as database:
            await migrate(database)
            yield table(database)
    elif request.param == FILE:
        put_blank(folder / "toolgate.db")
        async with _opened(f"sqlite:///{folder / 'toolgate.db'}") as database:
            yield table(database)
    else:
        server: Server = request.getfixturevalue("postgres")
        lent = lent_url(server, walled=request.param == WALLED)
        async with lent as url, _opened(url) as database:
            yield table(database)


@asynccontextmanager
async def _opened(url: str) -> AsyncGenerator[Database]:
    database = open_at(url)
    try:
        yield database
    finally:
        await database.close()
