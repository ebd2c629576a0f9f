"""A house in which a person is asked, and where approvals and events are kept."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.people.asked import look, pay, ran, send
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, MEMORY, PLACES, WALLED, open_at
from toolgate import Toolgate
from toolgate.call import Event
from toolgate.ledger.approval import Approvals
from toolgate.ledger.events import Outbox
from toolgate.ledger.journal import Journal
from toolgate.settings.settings import Settings
from toolgate.store.approvals import TableApprovals
from toolgate.store.database import Database
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.outbox import TableOutbox, enqueue
from toolgate.testing.approvals import MemoryApprovals
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.outbox import MemoryOutbox

TWIN = "twin"


class Kept(NamedTuple):
    """A journal, and the approvals beside it."""

    journal: Journal
    approvals: Approvals


class Box(NamedTuple):
    """An outbox, and how an event gets into it."""

    outbox: Outbox
    put: Callable[..., Awaitable[None]]


async def _opened(
    place: str, folder: Path, request: pytest.FixtureRequest, stack: AsyncExitStack
) -> Database:
    if place == MEMORY:
        url = "sqlite:///:memory:"
    elif place == FILE:
        url = f"sqlite:///{folder / 'toolgate.db'}"
    else:
        server: Server = request.getfixturevalue("postgres")
        url = await stack.enter_async_context(lent_url(server, walled=place == WALLED))
    database = open_at(url)
    stack.push_async_callback(database.close)
    await migrate(database)
    return database


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    """With tools that need an approval, a confirmation and nobody's word."""
    async with Toolgate.open(Settings(root=tmp_path)) as opened:
        opened.add(pay, send, look)
        yield opened


@pytest.fixture(params=(TWIN, *PLACES))
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Kept]:
    """Nobody was asked yet."""
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            journal = MemoryJournal()
            yield Kept(journal, MemoryApprovals(journal))
        else:
            database = await _opened(request.param, tmp_path, request, stack)
            yield Kept(TableJournal(database), TableApprovals(database, outbox=True))


@pytest.fixture(params=(TWIN, *PLACES))
async def box(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Box]:
    """Nothing waits yet."""
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            memory = MemoryOutbox()

            async def keep(event: Event, key: str = "") -> None:
                memory.put(event, key=key)

            yield Box(memory, keep)
        else:
            database = await _opened(request.param, tmp_path, request, stack)

            async def write(event: Event, key: str = "") -> None:
                await database.write(lambda connection: enqueue(connection, event, key=key))

            yield Box(TableOutbox(database), write)
