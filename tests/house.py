"""A gate on a SQLite file, and how to look into its journal and wait for it."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

from tests.blank import put_blank
from toolgate import Caller, Extension, Toolgate
from toolgate.executor.provider import Provider
from toolgate.net.guard import Guard
from toolgate.settings.execution import Toolbox as ToolboxSettings
from toolgate.settings.settings import Settings

ME = Caller(tenant="acme", agent="billing")
STORE = Path(".toolgate") / "toolgate.db"
# Servers of the tests are on this machine.
HERE = Guard(["127.0.0.0/8", "[::1]", "localhost"])


def open_gate(
    root: Path,
    *extensions: Extension,
    providers: Mapping[str, Provider] | None = None,
    default_timeout: float = 30.0,
) -> AbstractAsyncContextManager[Toolgate]:
    toolbox = ToolboxSettings(default_timeout=default_timeout)
    settings = Settings(root=root, toolbox=toolbox)
    put_blank(root / STORE)
    return Toolgate.open(settings, extensions=extensions, providers=providers)


def journal_rows(root: Path, call_id: str) -> list[dict[str, Any]]:
    """What a second connection sees of a side effect: nothing of ours is asked."""
    with closing(sqlite3.connect(root / STORE)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(
            "SELECT * FROM tool_execution_log WHERE call_id = ?", (call_id,)
        ).fetchall()
    return [dict(row) for row in found]


async def states(gate: Toolgate, caller: Caller = ME) -> list[tuple[str, str, str]]:
    """Tool, state and error code of every call on record, oldest first."""
    entries: Sequence[Any] = await gate.journal.entries(caller.tenant)
    return [(entry.tool, str(entry.state), entry.error_code) for entry in reversed(entries)]


async def until(holds: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Wait for what another thread or process does; the bound only ends a test that has failed."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.01)
