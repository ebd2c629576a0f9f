"""One server a session, and each house by its name."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.client.houses import House, Served, here, prepared, there
from tests.server.serving import Serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = tmp_path_factory.mktemp("remote") / "house"
    keys = asyncio.run(prepared(root))
    with Serving(root) as server:
        yield Served(server, keys)


@pytest.fixture
async def local(tmp_path: Path) -> AsyncGenerator[House]:
    async with here(tmp_path / "house") as house:
        yield house


@pytest.fixture
async def remote(served: Served) -> AsyncGenerator[House]:
    async with there(served) as house:
        yield house


@pytest.fixture(params=["local", "remote"])
def house(request: pytest.FixtureRequest) -> House:
    return request.getfixturevalue(request.param)
