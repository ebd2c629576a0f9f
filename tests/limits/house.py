"""A gate with limits, and tools that cost something."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from toolgate import Caller, Extension, Output, Toolgate, tool
from toolgate.errors import ToolgateError
from toolgate.settings.execution import Limits, Toolbox
from toolgate.settings.gate import Cache
from toolgate.settings.settings import Settings, Store

ME = Caller(tenant="acme", agent="billing", persona="clerk")


@tool(effect="pure")
async def look(what: str = "") -> str:
    """Look at something."""
    return what


@tool(effect="idempotent")
async def put(what: str = "") -> str:
    """Put something somewhere."""
    return what


@tool(effect="irreversible")
async def send(what: str = "") -> str:
    """Send something."""
    return what


def open_limited(
    root: Path,
    *,
    url: str = "",
    redis: str = "",
    lease: float = 15.0,
    extensions: Sequence[Extension] = (),
    **limits: Any,
) -> AbstractAsyncContextManager[Toolgate]:
    settings = Settings(
        root=root,
        limits=Limits(**limits),
        toolbox=Toolbox(lease=lease),
        cache=Cache(url=redis),
        store=Store(url=url) if url else Store(),
    )
    return Toolgate.open(settings, extensions=extensions)


async def outcome(gate: Toolgate, name: str, caller: Caller = ME, **args: Any) -> str:
    """`success`, the status of what did not succeed, or the code of what was refused."""
    try:
        output = await gate.call(name, args, caller=caller)
    except ToolgateError as error:
        return error.code
    return output.status


async def outcomes(gate: Toolgate, name: str, times: int, caller: Caller = ME) -> list[str]:
    """Of so many calls at once."""
    return await asyncio.gather(*(outcome(gate, name, caller) for _ in range(times)))


async def used(gate: Toolgate, metric: str = "tool_calls", tenant: str = "acme") -> float:
    lines = await gate.usage.lines(tenant=tenant)
    return next((line.used for line in lines if line.metric == metric), 0)


async def ran(gate: Toolgate, name: str, **args: Any) -> Output:
    output = await gate.call(name, args, caller=ME)
    assert output.ok, output
    return output


async def eventually(holds: Callable[[], Awaitable[bool]], *, seconds: float = 20.0) -> None:
    """As `tests.house.until`, for what has to be asked."""
    deadline = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        await asyncio.sleep(0.01)
