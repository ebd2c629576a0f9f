"""What every test can ask for."""

import gc
import os
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

# In minutes.
_LONG = 4
pytest_plugins = ["tests.servers.fixtures"]

sandboxes.on_path()

# How long an example takes depends on who else uses the machine.
settings.register_profile("house", deadline=None, max_examples=some(40, 100))
settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What may take minutes stands first in a worker's part, so that at the end nobody waits for
    it: each of them is given an equal stretch of what there is.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = sorted(filter(_minutes, items), key=_minutes, reverse=True)
    short = [item for item in items if not _minutes(item)]
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        first = long[worker::workers]
        size = (len(items) - len(ordered)) // (workers - worker)
        taken = max(size - len(first), 0)
        ordered += first + short[:taken]
        del short[:taken]
    items[:] = ordered + short


def _minutes(item: pytest.Item) -> int:
    """Of those that may take several."""
    mark = item.get_closest_marker("timeout")
    minutes = 0 if mark is None or not mark.args else int(mark.args[0] // 60)
    return minutes if minutes >= _LONG else 0


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
