"""A server that asks, says or lists without end costs a bounded amount, and nobody else's."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.house import until
from tests.upstreams.bare import Bare, address, program
from tests.upstreams.misbehaving import Server, Writer, event, serving
from toolgate.errors import ProviderUnavailable, ToolgateError
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.upstreams import flood
from toolgate.upstreams.connected import Connected

pytestmark = pytest.mark.req("P2")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def answering() -> int:
    """How many answers to what servers ask are under way."""
    names = [getattr(one.get_coro(), "__qualname__", "") for one in asyncio.all_tasks()]
    return sum(name in {"quietly", "Pipe._replied"} for name in names)


@pytest.fixture
def sandbox() -> Bare:
    return Bare()


@pytest.fixture
async def running(sandbox: Bare) -> AsyncGenerator[Connected]:
    upstream = program(sandbox=sandbox, script="asking")
    await upstream.open(20)
    yield upstream
    await upstream.close()


@pytest.mark.parametrize("most", [1_000, 1_000_000])
async def test_a_program_that_asks_without_end_is_ended(
    running: Connected, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With the second, it is ended because it takes no answer.
    monkeypatch.setattr(flood, "_MOST", most)
    monkeypatch.setattr("toolgate.upstreams.pipe._PATIENCE", 0.2)
    call = asyncio.create_task(running.call("flood", {}, seconds=30))
    worst = 0
    while not call.done():
        worst = max(worst, answering())
        await asyncio.sleep(0)
    with pytest.raises(ToolgateError, match="asks without end"):
        await call
    assert 0 < worst <= flood.MOST_OPEN


async def test_what_a_program_does_not_take_waits_with_who_sent_it(
    running: Connected, sandbox: Bare
) -> None:
    big = {"account": "x" * 1_000_000}
    deaf = asyncio.create_task(running.call("deaf", {}, seconds=30))
    calls = [asyncio.create_task(running.call("pay", big, seconds=0.3)) for _ in range(20)]
    found = await asyncio.gather(*calls, return_exceptions=True)
    # One has begun to be written; of the others nothing was.
    assert sum(isinstance(one, ProviderUnavailable) for one in found) == 19
    assert sandbox.last is not None
    assert sandbox.last.stdin.transport.get_write_buffer_size() < 2_000_000
    deaf.cancel()
    await asyncio.gather(deaf, return_exceptions=True)


class Shouting:
    """Asks on the stream of no call, thousands of times."""

    async def __call__(self, writer: Writer) -> None:
        for _ in range(50):
            writer.write(event(PING) * 100)
            await writer.drain()
        await asyncio.Event().wait()


def answers(server: Server) -> int:
    return sum(verb == "POST" and "method" not in said for verb, said, _ in server.heard)


async def test_a_server_that_takes_no_answers_is_not_listened_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flood, "_MOST", 200)
    client = HttpClient(Guard())
    async with serving() as server:
        server.takes.clear()
        server.stream = Shouting()
        upstream = address(server.port, client)
        await upstream.open()
        await until(lambda: answers(server) > 0)
        for _ in range(20):
            assert answering() <= flood.MOST_OPEN
            await asyncio.sleep(0)
        # The control: once it takes them there is more, and too much of it ends the connection.
        server.takes.set()
        await until(lambda: answers(server) > flood.MOST_OPEN)
        await until(lambda: "asks without end" in upstream.problem)
        await upstream.close()
    await client.close()


async def test_a_line_without_an_end_is_not_listened_to() -> None:
    client = HttpClient(Guard())

    async def endless(writer: Writer) -> None:
        writer.write(b"retry: 10\n\ndata: ")
        while True:
            writer.write(b"a" * 100_000)
            await writer.drain()

    async with serving() as server:
        server.stream = endless
        upstream = address(server.port, client)
        await upstream.open()
        await until(lambda: sum(verb == "GET" for verb, _, _ in server.heard) > 2)
        await upstream.close()
    await client.close()
