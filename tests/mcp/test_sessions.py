"""Sessions of the older revision: whose they are, and what who comes back to one finds."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest

from tests.mcp.house import House
from tests.mcp.older import Older
from toolgate import Call, tool
from toolgate.server.mcp.sessions import Session, Sessions

pytestmark = pytest.mark.req("V1", "V3")


@pytest.fixture
async def http() -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


async def _both(house: House, http: aiohttp.ClientSession) -> tuple[Older, Older]:
    """A session, and another key that names it as its own."""
    mine, theirs = await Older(house, http).begin(), Older(house, http, house.other)
    theirs.headers["Mcp-Session-Id"] = mine.headers["Mcp-Session-Id"]
    return mine, theirs


async def _status(sent: Any) -> int:
    async with sent as answer:
        return answer.status


async def test_a_session_belongs_to_the_key_that_began_it(
    house: House, http: aiohttp.ClientSession
) -> None:
    mine, theirs = await _both(house, http)
    assert await _status(mine.post("ping")) == 200
    # With one session alive, no id is still no session.
    none = Older(house, http)
    assert await _status(none.post("ping")) == 400
    for sent in (theirs.post("ping"), theirs.delete(), theirs.get()):
        assert await _status(sent) == 404
    none.headers["Mcp-Session-Id"] = "made-up"
    assert await _status(none.post("ping")) == 404
    assert await _status(mine.post("ping")) == 200
    assert await _status(mine.delete()) == 200
    assert await _status(mine.post("ping")) == 404


async def test_without_its_owner_a_session_would_be_anybodys(
    house: House, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard-off control."""
    _mine, theirs = await _both(house, http)

    def anybodys(sessions: Sessions, id_: str, _key: str) -> Session | None:
        return sessions._all.get(id_)  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(Sessions, "find", anybodys)
    assert await _status(theirs.post("ping")) == 200


async def test_who_comes_back_gets_the_rest_of_a_stream(
    house: House, http: aiohttp.ClientSession
) -> None:
    go = asyncio.Event()

    @tool(effect="irreversible")
    async def work(call: Call) -> str:
        """Work."""
        call.progress(1, 2, "begun")
        await go.wait()
        return "worked"

    house.gate.add(work)
    session = await Older(house, http).begin()
    params = {"name": "work", "_meta": {"progressToken": "p"}}
    last = ""
    async with session.post("tools/call", params, id_=7) as stream:
        async for line in stream.content:
            last = line.decode().removeprefix("id: ").strip() if b"id:" in line else last
            if b"begun" in line:
                break
    go.set()
    async with session.get(last) as rest:
        text = (await rest.content.readuntil(b"\n\n")).decode()
    assert '"worked"' in text
    assert '"id":7' in text
    entries = await house.gate.journal.entries("acme")
    assert [(one.tool, str(one.state)) for one in entries] == [("work", "succeeded")]
