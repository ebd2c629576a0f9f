"""Two gates on one store, of which the first hears nothing of the second by itself."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE
from toolgate import Call, Extension, Priority, Toolgate, tool, upkeep
from toolgate.settings.settings import Settings, Store

ran: list[str] = []


@tool(effect="irreversible")
async def effect(call: Call) -> str:
    """Leave a mark."""
    ran.append(call.id)
    return call.id


@tool(effect="irreversible", requires_approval=True, timeout=20)
async def grave(call: Call) -> str:
    """Leave a mark, once a person agrees."""
    ran.append(call.id)
    return call.id


@tool(effect="compensatable", compensation={"tool": "refund", "args": {"of": "$result.id"}})
async def pay(call: Call) -> dict[str, str]:
    """Leave a mark that can be taken back."""
    ran.append("pay")
    return {"id": call.id}


@tool(effect="idempotent")
async def refund(of: str) -> str:
    """Take one back."""
    ran.append("refund")
    return of


class Between(Extension):
    """What happens once a call was decided on, and before it is begun."""

    priority = Priority.NORMAL

    def __init__(self) -> None:
        self.happens: Callable[[], Awaitable[None]] | None = None

    async def before(self, _call: Call) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()


class Pair(NamedTuple):
    here: Toolgate
    there: Toolgate
    between: Between


@asynccontextmanager
async def opened(
    request: pytest.FixtureRequest, root: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Pair]:
    """What one changes, the other finds out only where it looks before it acts."""
    ran.clear()
    monkeypatch.setattr(upkeep, "_REFRESH", 600.0)
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{root / 'toolgate.db'}"
        if place != FILE:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
        settings, between = Settings(root=root, store=Store(url=url)), Between()
        here = await stack.enter_async_context(Toolgate.open(settings, extensions=(between,)))
        there = await stack.enter_async_context(Toolgate.open(settings))
        for gate in (here, there):
            gate.add(effect, grave, pay, refund)
        yield Pair(here, there, between)
