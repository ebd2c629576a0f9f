"""Each kind of sandbox that this machine has to have, and what runs in it."""

import os
import sys

import pytest

from tests.servers import sandboxes
from tests.servers.fixtures import needed
from toolgate.sandbox.choosing import Refusing, chosen
from toolgate.sandbox.sandbox import Sandbox
from toolgate.settings.outward import Sandbox as Settings

PYTHON = (os.path.realpath(sys.executable), "-I", "-S", "-B")


@pytest.fixture
async def bubblewrap() -> Sandbox:
    needed(sandboxes.bubblewrap)
    found = await chosen(Settings(kind="bubblewrap"))
    assert not isinstance(found, Refusing), found.refusal
    return found


@pytest.fixture
async def gvisor() -> Sandbox:
    needed(sandboxes.gvisor)
    found = await chosen(Settings(kind="gvisor"))
    if isinstance(found, Refusing) and os.geteuid() != 0:
        pytest.skip(f"skipped: {found.refusal}")
    assert not isinstance(found, Refusing), found.refusal
    return found
