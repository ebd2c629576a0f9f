"""What tools stand on, put together by hand, for tests of one tool without a house."""

import os
from pathlib import Path
from typing import Any

from toolgate.call import Event, Output
from toolgate.caller import Caller
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.sandbox.choosing import Refusing
from toolgate.settings.settings import Tools
from toolgate.testing.journal import MemoryJournal
from toolgate.testing.outputs import MemoryOutputs
from toolgate.testing.shelf import MemoryShelf
from toolgate.tools.means import Means
from toolgate.tools.working.pool import Workers


async def no_sandbox() -> Refusing:
    """None is to be had."""
    return Refusing("There is no sandbox in this test.")


async def allowed(_caller: Caller, _tool: str) -> object:
    """Everybody may."""
    return None


async def never(_tool: str, _args: dict[str, Any], **_whose: object) -> Output:
    """No call is made."""
    raise AssertionError("nothing was to be called")


async def unheard(_event: Event) -> None:
    """Nobody listens."""


def means(root: Path = Path("nowhere"), **parts: Any) -> Means:
    """Twins for all that is not given."""
    given: dict[str, Any] = {
        "settings": Tools(),
        "root": root,
        "client": HttpClient(Guard(())),
        "sandbox": no_sandbox,
        "workers": Workers(no_sandbox),
        "shelf": MemoryShelf(),
        "outputs": MemoryOutputs(),
        "journal": MemoryJournal(),
        "may": lambda: allowed,
        "perform": lambda: never,
        "tell": lambda: unheard,
        "environment": os.environ,
    }
    return Means(**given | parts)
