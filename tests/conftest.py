"""What every test can ask for."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.house import open_gate
from tests.servers import sandboxes
from toolgate import Toolgate

pytest_plugins = ["tests.servers.fixtures"]

sandboxes.on_path()

# How long an example takes depends on who else uses the machine.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncGenerator[Toolgate]:
    """A whole house on a SQLite file of its own, with the built-in tools and nobody in it."""
    async with open_gate(tmp_path) as opened:
        yield opened
