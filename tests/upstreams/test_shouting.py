"""A server that speaks without end is read more slowly, then not at all; nobody else waits."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.house import until
from tests.upstreams import misbehaving
from tests.upstreams.bare import Bare, address, program
from tests.upstreams.misbehaving import STREAM, Server, Writer, event, note, result, serving, text
from toolgate import clock
from toolgate.errors import ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.upstreams import events, flood
from toolgate.upstreams.connected import Connected
from toolgate.upstreams.events import EndlessError, Events
from toolgate.upstreams.flood import Flood, Noise

pytestmark = pytest.mark.req("P2")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    made = HttpClient(Guard())
    yield made
    await made.close()


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10**12
        self.pauses: list[float] = []
        monkeypatch.setattr(clock, "monotonic_ns", lambda: self.now)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += int(seconds * 1e9)


@pytest.mark.parametrize("much", [1.0, 400.0])
async def test_who_says_too_much_waits_as_long_as_that_takes(
    much: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, one = Clock(monkeypatch), Flood()
    begun = time.now
    for _ in range(int(100_000 / much)):
        await one.said(much)
    monkeypatch.undo()
    # Ten thousand at once, then two thousand a second.
    assert 44.8 < (time.now - begun) / 1e9 < 45.1
    assert not one.is_over
    # In between others have their turn.
    assert time.pauses.count(0) >= min(95, 9_000 / much)


async def test_who_has_said_nothing_for_a_while_may_say_as_much_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time, one = Clock(monkeypatch), Flood()
    for _ in range(3):
        for _ in range(10_000):
            await one.said()
        time.now += 10**10
    monkeypatch.undo()
    assert set(time.pauses) == {0}


async def test_who_never_stops_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    one, count = Flood(), 0
    while not one.is_over and count < 10_000:
        await one.said(400)
        count += 1
    monkeypatch.undo()
    # Five minutes long.
    assert 1_400 < count < 1_600


def test_lines_alone_are_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in (b"\n", b"\r", b":\r\n"):
        with pytest.raises(EndlessError):
            Events().feed(end * 50_000)
    # The control: as many events as one piece can well have.
    assert len(Events().feed(event(note("notifications/x")) * 5_000)) == 5_000
    # The guard-off control.
    monkeypatch.setattr(events, "_MOST_LINES", 10**9)
    one = Events()
    assert one.feed(b"\n" * 50_000) == []
    assert one.lines == 50_000


class Saying:
    """On the stream of a call: this without end, or so often, and then the answer."""

    def __init__(self, server: Server, said: bytes, times: int = 10**9) -> None:
        self.server, self.said, self.times, self.count = server, said, times, 0

    async def __call__(self, writer: Writer, id_: Any) -> None:
        writer.write(STREAM)
        for _ in range(self.times):
            self.count += 1
            writer.write(self.said)
            await writer.drain()
        writer.write(event(result(id_, text("ok"))))


@pytest.mark.parametrize(
    "said",
    [
        event(PING),
        event(note("notifications/progress", {"progress": 1})) * 10,
        event(b"noise") * 10,
        event(result(999_999, text("a stranger's"))) * 10,
        b"\n" * 1_000,
    ],
    ids=["questions", "notes", "noise", "answers", "lines"],
)
async def test_a_call_whose_stream_has_no_end_ends(
    said: bytes, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving() as server:
        some = Saying(server, said, 5)
        monkeypatch.setitem(misbehaving.ANSWERS, "some", some)
        monkeypatch.setitem(misbehaving.ANSWERS, "endless", Saying(server, said))
        upstream = address(server.port, client)
        await upstream.open()
        assert (await upstream.call("some", {}, seconds=20))["content"]
        monkeypatch.setattr(flood, "_MOST", 200)
        monkeypatch.setattr(flood, "_AT_ONCE_NS", 100_000_000)
        monkeypatch.setattr(flood, "_PATIENCE_NS", 500_000_000)
        with pytest.raises(ToolgateError, match="without end"):
            await upstream.call("endless", {}, seconds=20)
        answered = sum(verb == "POST" and "method" not in sent for verb, sent, _ in server.heard)
        assert answered <= 5 + 200 + 1
        await upstream.close()


async def test_a_server_that_says_things_without_end_is_not_listened_to(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flood, "_AT_ONCE_NS", 100_000_000)
    monkeypatch.setattr(flood, "_PATIENCE_NS", 300_000_000)
    said = 0

    async def shouts(writer: Writer) -> None:
        nonlocal said
        while True:
            said += 10
            writer.write(event(note("notifications/resources/list_changed")) * 10)
            await writer.drain()

    async with serving() as server:
        server.stream = shouts
        upstream = address(server.port, client)
        await upstream.open()
        await until(lambda: "without end" in upstream.problem)
        await upstream.close()
    assert said > 0


async def test_a_program_that_prints_beside_its_answers_is_served_for_as_long_as_it_answers() -> (
    None
):
    sandbox = Bare()
    upstream = program(sandbox=sandbox)
    await upstream.open(20)
    # Two lines each that are no MCP: twice as many as one that answers nothing may print.
    for _ in range(1_000):
        assert (await upstream.call("noise first", {}, seconds=10))["content"]
    assert len(sandbox.pids) == 1
    # The control: as many at once, and nothing else.
    with pytest.raises(ToolgateError, match="no MCP"):
        await upstream.call("only noise", {}, seconds=10)
    await upstream.close()


def test_a_call_that_prints_now_and_then_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    time, slow, fast = Clock(monkeypatch), Noise(), Noise()
    for _ in range(5_000):
        time.now += 20_000_000
        slow.line()
        assert not slow.is_all
    for _ in range(1_001):
        time.now += 5_000_000
        fast.line()
    assert fast.is_all
    monkeypatch.undo()


async def test_a_program_that_writes_empty_lines_without_end_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upstream: Connected = program(sandbox=Bare(), script="asking")
    await upstream.open(20)
    monkeypatch.setattr(flood, "_AT_ONCE_NS", 100_000_000)
    monkeypatch.setattr(flood, "_PATIENCE_NS", 300_000_000)
    with pytest.raises(ToolgateError, match="without end"):
        await upstream.call("blank", {}, seconds=30)
    await upstream.close()
