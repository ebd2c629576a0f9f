"""`notifications/cancelled`: what changes nothing ends, and a side effect runs to its end."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.house import until
from tests.mcp.house import LEGACY, META, House
from tests.mcp.older import Older
from tests.mcp.test_lines import Pipe
from toolgate import tool

pytestmark = pytest.mark.req("V1")
effects = pytest.mark.parametrize("effect", ["pure", "irreversible"])
CALL: dict[str, Any] = {"name": "work", "arguments": {}}
BEGIN: dict[str, Any] = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}


class Work:
    """A tool that ends when a test says so."""

    def __init__(self, house: House, effect: Any) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.over: list[str] = []

        @tool(effect=effect)
        async def work() -> dict[str, str]:
            """Work."""
            self.begun.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.over.append("cancelled")
                raise
            self.over.append("finished")
            return {"work": "done"}

        house.gate.add(work)


def told(work: Work, answers: list[Any], effect: str) -> None:
    """What is over, and what whoever asked for it has heard of it."""
    if effect == "pure":
        assert work.over == ["cancelled"]
        assert not any("result" in one for one in answers)
    else:
        [answer] = answers
        assert work.over == ["finished"]
        assert answer["result"]["structuredContent"] == {"work": "done"}


@effects
async def test_over_http_on_the_older_revision(house: House, effect: str) -> None:
    work = Work(house, effect)
    async with aiohttp.ClientSession() as http:
        older = await Older(house, http).begin()
        asked = asyncio.create_task(older.ask("tools/call", CALL, id_=7))
        await work.begun.wait()
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        async with http.post(house.url, json=body, headers=older.headers) as answer:
            assert answer.status == 202
        if effect != "pure":
            assert work.over == [], "nobody could say how far it got"
            work.go.set()
        told(work, [await asked], effect)


@effects
@pytest.mark.parametrize("version", ["newer", "older"])
async def test_on_a_pipe(house: House, effect: str, version: str) -> None:
    work, pipe = Work(house, effect), Pipe(house)
    if version == "older":
        pipe.say("initialize", BEGIN, "first")
        await until(lambda: len(pipe.heard) == 1)
    pipe.say("tools/call", CALL | ({"_meta": META} if version == "newer" else {}), 0)
    await work.begun.wait()
    pipe.say("notifications/cancelled", {"requestId": 0})
    # What comes behind it is answered behind it.
    pipe.say("tools/list", {"_meta": META}, "behind")
    await until(lambda: any(one.get("id") == "behind" for one in pipe.heard))
    if effect == "pure":
        await until(lambda: bool(work.over))
    else:
        assert work.over == [], "nobody could say how far it got"
        work.go.set()
        await until(lambda: any(one.get("id") == 0 for one in pipe.heard))
    told(work, [one for one in pipe.heard if one.get("id") == 0], effect)
    await pipe.close()
