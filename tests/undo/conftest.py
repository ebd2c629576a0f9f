"""The shop in memory, on a file and on PostgreSQL."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, POSTGRES
from tests.undo.shop import Shop
from toolgate import Toolgate
from toolgate.runtime import Runtime
from toolgate.settings.execution import Toolbox
from toolgate.settings.settings import Settings, Store
from toolgate.testing.house import in_memory

TWIN = "twin"


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture(params=(TWIN, FILE, POSTGRES))
async def house(
    request: pytest.FixtureRequest, tmp_path: Path, shop: Shop
) -> AsyncGenerator[Runtime]:
    """A house that looks after lost calls only when it is told to."""
    async with AsyncExitStack() as stack:
        if request.param == TWIN:
            yield await stack.enter_async_context(in_memory(*shop.tools()))
            return
        store = Store()
        if request.param == POSTGRES:
            server: Server = request.getfixturevalue("postgres")
            store = Store(url=await stack.enter_async_context(lent_url(server)))
        settings = Settings(root=tmp_path, store=store, toolbox=Toolbox(lease=60))
        opened = await stack.enter_async_context(Toolgate.open(settings))
        opened.add(*shop.tools())
        yield opened
