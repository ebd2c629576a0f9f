"""Tools that stay until they are let go, and calls of them."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.house import ME
from toolgate import Call, Caller, tool
from toolgate.errors import ToolgateError
from toolgate.runtime import Runtime


class Room:
    """A tool that stays until it is let go; what ran at a time, and in which order."""

    def __init__(self, name: str = "stay", **fields: Any) -> None:
        self.go = asyncio.Event()
        self.now = self.most = 0
        self.order: list[str] = []

        given: Any = {"name": name, "effect": "pure"} | fields

        @tool(**given)
        async def stay(call: Call) -> str:
            self.order.append(call.caller.tenant)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await self.go.wait()
            finally:
                self.now -= 1
            return "done"

        self.tool: Callable[..., Any] = stay


async def settled() -> None:
    """Give everything that can go on the time to."""
    for _ in range(20):
        await asyncio.sleep(0)


def calling(house: Runtime, name: str, times: int = 1, caller: Caller = ME) -> list[Any]:
    return [asyncio.create_task(house.call(name, caller=caller)) for _ in range(times)]


def codes(found: list[Any]) -> Counter[str]:
    return Counter(one.code if isinstance(one, ToolgateError) else "done" for one in found)
