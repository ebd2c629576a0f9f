"""A request lets go of everything by itself: what only a collector finds holds up every other."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import aiohttp
import orjson
import pytest

from tests.mcp.house import META, MODERN, House
from toolgate import clock

pytestmark = pytest.mark.req("V1")
TIMES = 200
BODY = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}, "_meta": META},
    }
)


async def test_a_call_leaves_nothing_behind(house: House) -> None:
    headers = {
        "Authorization": f"Bearer {house.ann}",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "echo",
    }
    async with aiohttp.ClientSession() as http:

        async def call() -> None:
            async with http.post(house.url, data=BODY, headers=headers) as answer:
                assert (await answer.json())["result"]["isError"] is False

        for _ in range(10):
            await call()
        await house.gate.journal.drain()

        async def left(work: Callable[[], Awaitable[object]]) -> int:
            gc.collect()
            gc.disable()
            try:
                await work()
                await house.gate.journal.drain()
                return gc.collect()
            finally:
                gc.enable()

        async def calls() -> None:
            for _ in range(TIMES):
                await call()

        # What the house does by itself meanwhile is not of any call: so much is left of that in the
        # same time. A call leaves what it leaves every time.
        for last in (False, False, True):
            began_ns = clock.monotonic_ns()
            found = await left(calls)
            seconds = (clock.monotonic_ns() - began_ns) / 1e9
            found -= await left(lambda: asyncio.sleep(seconds))  # noqa: B023  it is awaited here
            if found < 3 * TIMES:
                break
            assert not last, found
