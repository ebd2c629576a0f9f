"""What tests of the scheduler ask and wait for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson

from tests.tools.asking import ME, told
from toolgate import Caller, Toolgate
from toolgate.tools.agent.diary import Diary, Noted
from toolgate.tools.means import Means
from toolgate.tools.provider import BuiltinProvider

SOON = "now"
STRANGER = Caller(tenant="globex", agent="clerk")
_SECONDS = 20.0


def a_call(tool: str, args: dict[str, Any]) -> str:
    return orjson.dumps({"tool": tool, "args": args}).decode()


def means_of(gate: Toolgate) -> Means:
    provider = gate._executor._providers["builtin"]  # pyright: ignore[reportPrivateUsage]
    assert isinstance(provider, BuiltinProvider)
    return provider.means


def diary_of(gate: Toolgate) -> Diary:
    return Diary(means_of(gate).shelf, "acme")


async def noted(gate: Toolgate, name: str) -> Noted:
    found = await diary_of(gate).find(name)
    assert found is not None
    return found


async def due(gate: Toolgate, name: str, at_ns: int) -> None:
    """Let it be due since then."""
    one, revision = await noted(gate, name)
    late = msgspec.structs.replace(one, next_ns=at_ns, held_ns=0)
    assert await diary_of(gate).change(Noted(late, revision))
    means_of(gate).scheduled.set()


async def until(holds: Callable[[], Awaitable[Any]]) -> Any:
    """What it gives once it is something; the bound only ends a test that has failed."""
    async with asyncio.timeout(_SECONDS):
        while True:
            if found := await holds():
                return found
            await asyncio.sleep(0.02)


async def notices(gate: Toolgate, caller: Caller = ME, *, count: int = 1) -> list[str]:
    """Scheduled notices, once so many are there."""

    async def texts() -> list[str] | None:
        found = await told(gate, "read_inbox", caller, kind="scheduled", limit=100)
        texts = [one["text"] for one in found["notices"]]
        return texts if len(texts) >= count else None

    return await until(texts)
