"""A request lets go of everything by itself: what only a collector finds holds up every other."""

import gc

import aiohttp
import orjson
import pytest

from tests.mcp.house import META, MODERN, House

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
        gc.collect()
        gc.disable()
        try:
            for _ in range(TIMES):
                await call()
            await house.gate.journal.drain()
            # What a statement or two leave behind is not of each call.
            assert gc.collect() < 3 * TIMES
        finally:
            gc.enable()
