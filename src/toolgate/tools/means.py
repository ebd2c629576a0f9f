"""What built-in tools stand on: the parts of the house that they are handed with each call."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from toolgate.call import Event, Output, Turn
from toolgate.caller import Caller
from toolgate.catalog.plugins import Reloaded
from toolgate.executor.resilience.places import Places
from toolgate.ledger.journal import Journal
from toolgate.ledger.outputs import Outputs
from toolgate.net.client import HttpClient
from toolgate.sandbox.sandbox import Sandbox
from toolgate.settings.settings import Tools
from toolgate.shelf import Shelf
from toolgate.spec.tool import ToolSpec
from toolgate.tools.working.pool import Workers

# The tool, where the caller may call it today; it raises where not.
May = Callable[[Caller, str], Awaitable[ToolSpec]]
# Tells those who listen to what happens.
Tell = Callable[[Event], Awaitable[None]]


async def _no_plugins() -> Reloaded:
    return Reloaded()


def _as_it_comes() -> None:
    """Whether there is one is seen when a program runs."""


class Perform(Protocol):
    """Makes a call, through the gate and on record, as whoever is named."""

    async def __call__(
        self, tool: str, args: dict[str, Any], *, caller: Caller, turn: Turn | None = None
    ) -> Output: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """One for a house. Tools keep nothing of their own: what lasts is on the shelf.

    Paths of the settings start at `root`. No tool writes what is `protected`, wherever it lies, and
    none reads what is `hidden`.
    """

    settings: Tools
    root: Path
    client: HttpClient
    sandbox: Callable[[], Awaitable[Sandbox]]
    # Raises where it is known, without a try, that none holds.
    require_sandbox: Callable[[], None] = _as_it_comes
    workers: Workers
    shelf: Shelf
    outputs: Outputs
    journal: Journal
    # What the gate says, and how calls are made, once the house stands.
    may: Callable[[], May]
    perform: Callable[[], Perform]
    reload_plugins: Callable[[], Awaitable[Reloaded]] = _no_plugins
    tell: Callable[[], Tell]
    protected: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str]
    # Files that are in memory as a whole at a time.
    large: Places = field(default_factory=lambda: Places(4, each=2, waiting=64))
    # Programs of callers that run at a time.
    programs: Places = field(default_factory=lambda: Places(16, each=8, waiting=64))
    # Set when something is scheduled, so that whoever runs it looks at once.
    scheduled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What is hidden and is there: for the policy of a sandbox."""
        return tuple(str(path) for path in self.hidden if path.exists())
