"""What every test can ask for."""

import gc
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import memory
from tests.house import open_gate
from tests.servers import sandboxes
from tests.servers.process import ROOT
from tests.thorough import some
from toolgate import Toolgate

pytest_plugins = ["tests.servers.fixtures"]

sandboxes.on_path()

# How long an example takes depends on who else uses the machine.
settings.register_profile("house", deadline=None, max_examples=some(40, 100))
settings.load_profile("house")


def pytest_collection_finish() -> None:
    """What was read to find the tests stays to the end; no collection has to walk it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Path]:
    """A folder of the test's own, in memory where that changes nothing."""
    area = request.path.relative_to(ROOT / "tests").parts[0]
    if area in memory.AREAS and memory.has_room():
        with memory.folder() as made:
            yield made
    else:
        yield tmp_path


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    """A whole house on a SQLite file of its own, with the built-in tools and nobody in it."""
    async with open_gate(tmp_path) as opened:
        yield opened
