"""What one client can take of a server is bounded, and what it asks oddly costs nobody else."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.house import until
from tests.mcp.house import House
from tests.mcp.older import Older
from tests.mcp.test_hearing import listen, listening
from toolgate import tool
from toolgate.server.mcp import changes
from toolgate.server.mcp.changes import Changes
from toolgate.server.mcp.kept import Kept
from toolgate.server.mcp.sessions import Session
from toolgate.server.mcp.sse import Stream
from toolgate.server.mcp.template import MOST, matched
from toolgate.spec.tool import Resource

pytestmark = pytest.mark.req("V1")


@pytest.fixture
async def http() -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> list[Changes]:
    """Whoever counts those who listen."""
    made: list[Changes] = []
    begin = Changes.__init__

    def kept(self: Changes, gate: Any) -> None:
        begin(self, gate)
        made.append(self)

    monkeypatch.setattr(Changes, "__init__", kept)
    return made


def count(listeners: list[Changes]) -> int:
    return sum(len(one._listeners) for one in listeners)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("days://{y}-{m}-{d}", "days://2026-11-16", {"y": "2026", "m": "11", "d": "16"}),
        ("days://{y}/{m}.txt", "days://2026/1%2F2.txt", {"y": "2026", "m": "1/2"}),
        ("days://{y}/{m}.txt", "days://2026/.txt", None),
        ("days://{y}/{m}.txt", "days://a/b/c.txt", None),
        ("days://{y}/{m}.txt", "days://2026/1.txt#x", None),
        ("days://{y}.txt", "days://.txt.txt", {"y": ".txt"}),
        ("days://{a}-{b}", "days://x-y-z", {"a": "x", "b": "y-z"}),
        ("days://{a}{b}", "days://xyz", {"a": "x", "b": "yz"}),
        ("days://{a}{b}", "days://x", None),
        ("days://all", "days://all", {}),
        ("days://all", "days://all/x", None),
        ("days://{y}", "days://" + "x" * MOST, None),
    ],
)
def test_a_uri_is_read_by_its_template(template: str, uri: str, found: Any) -> None:
    assert matched(Resource(uri=template), uri) == found


def test_no_uri_keeps_a_template_busy() -> None:
    """What tries every place for every name again would not be over in a lifetime."""
    names = "".join(f"{{n{number}}}-" for number in range(12))
    assert matched(Resource(uri=f"days://{names}end"), "days://" + "-" * (MOST - 8)) is None


async def test_a_uri_that_is_too_long_is_not_looked_for(house: House) -> None:
    status, body = await house.post("resources/read", {"uri": "x://" + "y" * MOST})
    assert (status, body["error"]["code"]) == (400, -32602)
    assert "4,096" in body["error"]["message"]


@pytest.mark.parametrize("last", ["s.x", "s.-1", "s.", "s", "s." + "9" * 5_000, "7.0", "."])
async def test_what_is_no_event_of_ours_leaves_nothing_behind(
    listeners: list[Changes], house: House, http: aiohttp.ClientSession, last: str
) -> None:
    session = await Older(house, http).begin()
    async with session.get(last) as answer:
        assert answer.status == 404
    assert count(listeners) == 0
    async with session.get() as answer:
        assert answer.status == 200
        assert count(listeners) == 1
    await until(lambda: count(listeners) == 0)


async def test_a_digit_that_is_no_number_of_ours_is_none(
    listeners: list[Changes], house: House, http: aiohttp.ClientSession
) -> None:
    """As bytes: a client's library would write it otherwise."""
    session = await Older(house, http).begin()
    url = URL(house.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    sent = session.headers | {"Host": "127.0.0.1", "Last-Event-ID": "s.²", "Connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    writer.write(f"GET {url.path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
    assert b" 404 " in await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert count(listeners) == 0


async def test_who_comes_back_takes_its_stream_over(
    listeners: list[Changes], house: House, http: aiohttp.ClientSession
) -> None:
    session = await Older(house, http).begin()
    async with AsyncExitStack() as lines:
        first = await lines.enter_async_context(session.get())
        async with session.get() as second:
            assert second.status == 409
        again = [await lines.enter_async_context(session.get("s.0")) for _ in range(5)]
        assert [one.status for one in again] == [200] * 5
        await until(lambda: count(listeners) == 1)
        # The line before it ends as one that is over, not as one that broke.
        assert await first.read() == b""
        async with session.get() as other:
            assert other.status == 409
        await house.gate.tenancy.by("test").set_tenant_tool("acme", "echo", enabled=False)
        assert b"tools/list_changed" in await again[-1].content.readuntil(b"\n\n")
    await until(lambda: count(listeners) == 0)


async def test_one_key_does_not_take_all_places(
    house: House, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_OF_KEY", 2)
    wanted = {"toolsListChanged": True}
    sessions = [await Older(house, http).begin() for _ in range(2)]
    async with AsyncExitStack() as lines:
        first = await lines.enter_async_context(sessions[0].get())
        assert first.status == 200
        heard = await lines.enter_async_context(listening(listen(house, http, wanted)))
        await until(lambda: len(heard) == 1)
        async with sessions[1].get() as full:
            assert (full.status, full.headers["Retry-After"]) == (503, "60")
        async with listen(house, http, wanted) as refused:
            assert b"Too many listen" in await refused.read()
        theirs = await lines.enter_async_context(
            listening(listen(house, http, wanted, house.other))
        )
        await until(lambda: len(theirs) == 1)
        assert "acknowledged" in str(theirs[0])


async def test_many_who_come_at_once_do_not_find_the_same_place(
    house: House, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_OF_KEY", 2)
    sessions = [await Older(house, http).begin() for _ in range(6)]
    async with AsyncExitStack() as lines:
        opened = [lines.enter_async_context(one.get()) for one in sessions]
        statuses = sorted([(await one).status for one in opened])
    assert statuses == [200, 200, 503, 503, 503, 503]


async def test_an_id_that_is_in_use_is_refused_and_the_first_is_answered(
    house: House, http: aiohttp.ClientSession
) -> None:
    begun, go = list[str](), asyncio.Event()

    @tool(effect="irreversible")
    async def mail(to: str) -> str:
        """Send it."""
        begun.append(to)
        await go.wait()
        return to

    house.gate.add(mail)
    session = await Older(house, http).begin()
    first = asyncio.create_task(_called(session, "bob"))
    await until(lambda: begun == ["bob"])
    second = await session.ask("tools/call", {"name": "mail", "arguments": {"to": "eve"}})
    assert second["error"]["code"] == -32600
    pinged = await session.ask("ping")
    assert pinged["error"]["code"] == -32600
    go.set()
    assert b'"bob"' in await first
    assert begun == ["bob"]
    assert await session.ask("ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def _called(session: Older, to: str) -> bytes:
    async with session.post("tools/call", {"name": "mail", "arguments": {"to": to}}) as answer:
        return await answer.read()


async def test_who_takes_no_stream_is_not_asked_in_one(
    house: House, http: aiohttp.ClientSession
) -> None:
    sent: list[str] = []

    @tool(effect="irreversible", requires_confirmation=True)
    async def mail(to: str) -> str:
        """Send it."""
        sent.append(to)
        return to

    house.gate.add(mail)
    session = await Older(house, http).begin({"elicitation": {}})
    params = {"name": "mail", "arguments": {"to": "bob"}}
    told = await session.ask("tools/call", params, accept="application/json")
    assert told["result"]["_meta"]["toolgate/status"] == "pending_approval"
    # The control: who takes one is asked.
    async with session.post("tools/call", params, id_=2) as asked:
        assert asked.content_type == "text/event-stream"
        while b"elicitation/create" not in await asked.content.readline():
            pass
    assert sent == []


async def test_what_a_session_subscribes_to_is_bounded(
    house: House, http: aiohttp.ClientSession
) -> None:
    @tool(effect="pure", resource="days://{day}")
    async def day(day: str) -> str:
        """Look it up."""
        return day

    house.gate.add(day)
    session = await Older(house, http).begin()

    async def subscribed(uri: str) -> bool:
        return "result" in await session.ask("resources/subscribe", {"uri": uri})

    assert not await subscribed("days://" + "x" * MOST)
    long = "x" * 4_000
    found = [await subscribed(f"days://{number}{long}") for number in range(20)]
    assert found == [True] * 16 + [False] * 4
    assert await subscribed(f"days://0{long}")
    assert await subscribed("days://1")


def test_of_streams_that_are_over_the_oldest_go_first() -> None:
    kept, gone = Kept(100), list[Stream]()
    streams = [_over(30) for _ in range(5)]
    for one in streams:
        kept.add(one, gone.append)
    assert gone == streams[:2]
    kept.discard(streams[2])
    large = _over(200)
    kept.add(large, gone.append, spare=True)
    assert gone == [*streams[:2], *streams[3:]]
    kept.add(_over(1), gone.append)
    assert gone[-1] is large


def _over(size: int) -> Stream:
    made = Stream("x")
    made.put(b"x" * size)
    made.close()
    return made


def test_sessions_of_one_key_share_what_is_kept() -> None:
    peer: Any = None
    shared = Kept(1_000)
    one, two = Session("1", peer, shared), Session("2", peer, shared)
    found: list[tuple[Session, Stream]] = []
    for session in (one, two, one):
        stream = session.stream()
        stream.put(b"x" * 400)
        session.over(stream)
        found.append((session, stream))
    assert [session.find(stream.id) is stream for session, stream in found] == [False, True, True]
    two.close()
    last = two.stream()
    last.put(b"x" * 400)
    two.over(last)
    assert one.find(found[2][1].id) is found[2][1]


async def test_an_answer_that_came_at_once_is_not_kept(
    house: House, http: aiohttp.ClientSession
) -> None:
    session = await Older(house, http).begin()
    params = {"name": "echo", "arguments": {"text": "hi"}}
    assert "result" in await session.ask("tools/call", params)
    async with session.get("1.0") as answer:
        assert answer.status == 404
