"""The stores that every suite runs over."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.blank import put_blank
from tests.servers.postgres import Postgres as Server
from tests.store.kept import KINDS
from tests.store.lent import lent_url
from tests.store.once import Once
from tests.store.once import opened as once_opened
from tests.store.places import FILE, MEMORY, PLACES, POSTGRES, SHARED, WALLED, fresh_url, open_at
from toolgate.ledger.journal import Journal
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.tenancy.directory import Directory
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.journal import MemoryJournal

TWIN = "twin"


async def _url(
    place: str, folder: Path, request: pytest.FixtureRequest, stack: AsyncExitStack
) -> str:
    if place == MEMORY:
        return "sqlite:///:memory:"
    if place == FILE:
        return f"sqlite:///{folder / 'toolgate.db'}"
    server: Server = request.getfixturevalue("postgres")
    return await stack.enter_async_context(fresh_url(server))


async def opened(
    place: str, folder: Path, request: pytest.FixtureRequest, stack: AsyncExitStack
) -> Database:
    if place in {POSTGRES, WALLED}:
        server: Server = request.getfixturevalue("postgres")
        url = await stack.enter_async_context(lent_url(server, walled=place == WALLED))
    else:
        url = await _url(place, folder, request, stack)
    if place == FILE:
        put_blank(folder / "toolgate.db")
    database = open_at(url)
    stack.push_async_callback(database.close)
    if place == MEMORY:
        await migrate(database)
    return database


@pytest.fixture(params=PLACES)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    """An open database with this version's tables."""
    async with AsyncExitStack() as stack:
        yield await opened(request.param, tmp_path, request, stack)


@pytest.fixture(params=SHARED)
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[str]:
    """Where an empty store can be opened, by several at once."""
    async with AsyncExitStack() as stack:
        yield await _url(request.param, tmp_path, request, stack)


@pytest.fixture(params=(TWIN, *PLACES))
async def directory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Directory]:
    """A world in which nobody is yet."""
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield MemoryDirectory()
        else:
            yield TableDirectory(await opened(request.param, tmp_path, request, stack))


@pytest.fixture(params=(TWIN, *PLACES))
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Journal]:
    """A journal in which nothing has happened; what is noted waits until it is drained."""
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield MemoryJournal()
        else:
            yield TableJournal(await opened(request.param, tmp_path, request, stack))


@pytest.fixture(params=KINDS)
async def once(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Once]:
    """A store as several processes see it, in which nothing has begun."""
    async with once_opened(request, tmp_path) as found:
        yield found
