"""What other servers tell, told to those who may hear it; and nothing stays when they go."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.house import until
from tests.mcp.house import LEGACY, META, MODERN, House
from tests.mcp.others import BOOK, Behind, behind, library
from toolgate.errors import Overloaded
from toolgate.server.mcp import allowance
from toolgate.upstreams.upstream import Kind

pytestmark = pytest.mark.req("P3", "V1")
READ = "mcp:library:read_resource"
ALL = {"resourcesListChanged": True, "promptsListChanged": True, "toolsListChanged": True}


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Behind]:
    async with behind(tmp_path) as found:
        yield found


class Heard(list[dict[str, Any]]):
    """Messages, as they came."""

    def methods(self) -> list[str]:
        return [one["method"].removeprefix("notifications/") for one in self if "method" in one]


@asynccontextmanager
async def listening(request: Any) -> AsyncGenerator[Heard]:
    """A stream that is read until the end of the block."""
    heard = Heard()

    async def read() -> None:
        async with request as stream:
            async for line in stream.content:
                if line.startswith(b"data: ") and line.strip() != b"data:":
                    heard.append(orjson.loads(line[6:]))

    task = asyncio.create_task(read())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def listen(house: House, http: aiohttp.ClientSession, wanted: Any, key: str = "") -> Any:
    body = {"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen"}
    raw = orjson.dumps(body | {"params": {"notifications": wanted, "_meta": META}})
    headers = {
        "Authorization": f"Bearer {key or house.ann}",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
        "Accept": "text/event-stream, application/json",
    }
    return http.post(house.url, data=raw, headers=headers)


class Older:
    """A session of the older revision, by hand."""

    def __init__(self, house: House, http: aiohttp.ClientSession) -> None:
        self._house, self._http = house, http
        self._headers = {
            "Authorization": f"Bearer {house.ann}",
            "Accept": "application/json, text/event-stream",
        }

    async def begin(self) -> None:
        params: dict[str, Any] = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
        self._headers["Mcp-Session-Id"] = (await self.ask("initialize", params))[1]

    async def ask(self, method: str, params: Any) -> tuple[Any, str]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self._http.post(
            self._house.url, data=orjson.dumps(body), headers=self._headers
        ) as answer:
            return await answer.json(), answer.headers.get("Mcp-Session-Id", "")

    def beside(self) -> Any:
        return self._http.get(self._house.url, headers=self._headers)


async def test_many_who_listen_hear_what_they_asked_for_and_leave_nothing(shop: Behind) -> None:
    server = library()
    shop.put(server)
    wanted = {**ALL, "resourceSubscriptions": [BOOK, "nowhere://x", "focal://tools/x"]}
    async with aiohttp.ClientSession() as http:
        async with (
            listening(listen(shop.house, http, wanted)) as one,
            listening(listen(shop.house, http, {"promptsListChanged": True})) as two,
        ):
            await until(lambda: bool(one) and bool(two))
            told = one[0]["params"]["notifications"]
            # A URI that nobody lists is the only server's to know.
            assert told == {**ALL, "resourceSubscriptions": [BOOK, "nowhere://x"]}
            assert server.watched(BOOK) == 1
            server.touch(BOOK)
            await until(lambda: len(one) == 2)
            assert one[1]["params"]["uri"] == BOOK
            assert one[1]["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}
            server.change(Kind.RESOURCES, [])
            server.change(Kind.PROMPTS, [])
            await until(lambda: len(one) == 4 and len(two) == 2)
            assert one.methods()[2:] == ["resources/list_changed", "prompts/list_changed"]
            assert two.methods()[1:] == ["prompts/list_changed"]
        await until(lambda: server.watched(BOOK) == 0)


async def test_a_session_hears_from_its_subscription_to_its_end(shop: Behind) -> None:
    server = library()
    shop.put(server)
    async with aiohttp.ClientSession() as http:
        session = Older(shop.house, http)
        await session.begin()
        assert "result" in (await session.ask("resources/subscribe", {"uri": BOOK}))[0]
        # Who does not listen is not told.
        assert server.watched(BOOK) == 0
        async with listening(session.beside()) as heard:
            await until(lambda: server.watched(BOOK) == 1)
            server.touch(BOOK)
            await until(lambda: heard.methods() == ["resources/updated"])
            more = {"uri": "library://cover"}
            await session.ask("resources/subscribe", more)
            assert server.watched("library://cover") == 1
            await session.ask("resources/unsubscribe", more)
            assert server.watched("library://cover") == 0
            server.change(Kind.PROMPTS, [])
            await until(lambda: heard.methods()[1:] == ["prompts/list_changed"])
        await until(lambda: server.watched(BOOK) == 0)
        never = await session.ask("resources/subscribe", {"uri": "focal://no"})
        assert never[0]["error"]["code"] == -32002


async def test_who_may_not_read_it_any_more_hears_no_more_of_it(shop: Behind) -> None:
    server = library()
    shop.put(server)
    wanted = {"resourceSubscriptions": [BOOK], "resourcesListChanged": True}
    async with aiohttp.ClientSession() as http:
        async with (
            listening(listen(shop.house, http, wanted)) as mine,
            listening(listen(shop.house, http, wanted, shop.house.other)) as theirs,
        ):
            await until(lambda: bool(mine) and bool(theirs))
            assert server.watched(BOOK) == 2
            await shop.forbid(READ)
            server.touch(BOOK)
            server.change(Kind.RESOURCES, [])
            # The control hears both; the other only that its lists are shorter now.
            await until(lambda: len(theirs) == 3)
            await until(lambda: server.watched(BOOK) == 1)
            await until(lambda: len(mine) == 2)
            assert mine.methods()[1:] == ["resources/list_changed"]
        async with listening(listen(shop.house, http, wanted)) as again:
            await until(lambda: bool(again))
            assert "resourceSubscriptions" not in again[0]["params"]["notifications"]


async def test_a_server_that_tells_nothing_is_not_listened_to(shop: Behind) -> None:
    server = library()
    shop.put(server)
    server.lists[Kind.RESOURCES] = server.lists[Kind.TEMPLATES] = []
    async with aiohttp.ClientSession() as http:
        async with listening(listen(shop.house, http, {"resourceSubscriptions": [BOOK]})) as heard:
            await until(lambda: bool(heard))
            assert heard[0]["params"]["notifications"] == {}
        session = Older(shop.house, http)
        await session.begin()
        told = await session.ask("resources/subscribe", {"uri": BOOK})
        assert "does not tell" in told[0]["error"]["message"]


async def test_the_clients_of_one_key_watch_so_much_together(
    shop: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "MOST", 2)
    server = library()
    shop.put(server)
    uris = [f"library://{number}/x" for number in range(3)]
    wanted = {"resourceSubscriptions": uris}

    def told(heard: Heard) -> list[str]:
        return heard[0]["params"]["notifications"].get("resourceSubscriptions", [])

    async with aiohttp.ClientSession() as http:
        async with listening(listen(shop.house, http, wanted)) as one:
            await until(lambda: bool(one))
            assert told(one) == uris[:2]
            # Another key has its own share.
            async with (
                listening(listen(shop.house, http, wanted)) as two,
                listening(listen(shop.house, http, wanted, shop.house.other)) as other,
            ):
                await until(lambda: bool(two) and bool(other))
                assert (told(two), told(other)) == ([], uris[:2])
        await until(lambda: server.watched(uris[0]) == 0)
        # What was given back can be had again.
        async with listening(listen(shop.house, http, wanted)) as again:
            await until(lambda: bool(again))
            assert told(again) == uris[:2]
        # The guard-off control.
        monkeypatch.setattr(allowance, "MOST", 10**9)
        async with listening(listen(shop.house, http, wanted)) as free:
            await until(lambda: bool(free))
            assert told(free) == uris


@pytest.mark.parametrize("full", ["key", "server"])
async def test_a_session_is_not_told_that_it_watches_what_it_does_not(
    shop: Behind, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = library()
    shop.put(server)
    async with aiohttp.ClientSession() as http:
        session = Older(shop.house, http)
        await session.begin()
        first = {"uri": "library://1/x"}
        assert "result" in (await session.ask("resources/subscribe", first))[0]
        async with listening(session.beside()):
            await until(lambda: server.watched(first["uri"]) == 1)
            if full == "key":
                monkeypatch.setattr(allowance, "MOST", 1)
            else:
                monkeypatch.setattr(server, "watch", overloaded)
            more = {"uri": "library://2/x"}
            assert "too much is watched" in str(await session.ask("resources/subscribe", more))
            assert server.watched(more["uri"]) == 0
            # What it has, it keeps.
            assert "result" in (await session.ask("resources/subscribe", first))[0]


async def overloaded(*_given: Any) -> Any:
    raise Overloaded("Too many resources of this server are watched.", retry_after=60)
