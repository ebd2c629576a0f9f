"""The recorder, the nest and the stores that workers share."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import pytest

from tests.once.books import Books
from tests.once.nest import Nest, nesting
from tests.once.recorder import Recorder, recording
from tests.once.staff import Staff
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED

Lends = Callable[[Server], AbstractAsyncContextManager[str]]


@pytest.fixture(scope="session")
def nest() -> Generator[Nest]:
    with nesting() as found:
        yield found


@pytest.fixture
def recorder(tmp_path: Path) -> Generator[Recorder]:
    with recording(tmp_path) as found:
        yield found


@pytest.fixture
def lends() -> Lends:
    """Where PostgreSQL's come from: with their tables, unless a test asks for one without."""
    return lent_url


@pytest.fixture(params=SHARED)
async def url(request: pytest.FixtureRequest, tmp_path: Path, lends: Lends) -> AsyncGenerator[str]:
    """Where an empty store can be opened, by several at once."""
    async with AsyncExitStack() as stack:
        if request.param == FILE:
            yield f"sqlite:///{tmp_path / 'toolgate.db'}"
        else:
            server: Server = request.getfixturevalue("postgres")
            yield await stack.enter_async_context(lends(server))


@pytest.fixture
async def staff(nest: Nest, recorder: Recorder, url: str, tmp_path: Path) -> AsyncGenerator[Staff]:
    async with Staff(nest, tmp_path, url, recorder.port) as found:
        yield found


@pytest.fixture
async def books(url: str) -> AsyncGenerator[Books]:
    found = Books(url)
    yield found
    await found.close()
