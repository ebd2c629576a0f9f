"""What every test of the executor begins with."""

import pytest

from tests.executor.marks import ran


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    ran.clear()
