"""One house for a test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.mcp.house import House, opened


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with opened(tmp_path) as found:
        yield found
