"""Rate limits that processes share in Redis: exact together, and never unlimited without it."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import pytest

from tests.limits.house import eventually, look, open_limited, outcome, outcomes, put, send
from tests.limits.test_processes import hear, tell, worker
from tests.servers.fixtures import running
from tests.servers.redis import Redis as Server
from toolgate.errors import LimitsUnavailable
from toolgate.gcra import Limit, limit
from toolgate.store.rates import RedisRates

pytestmark = pytest.mark.req("X10", "D2")


@pytest.fixture
def own() -> Generator[Server]:
    """A server that a test may take away."""
    yield from running(Server)


@pytest.fixture
async def rates(own: Server) -> AsyncGenerator[RedisRates]:
    found = RedisRates(own.url, "tests")
    yield found
    await found.close()


@contextmanager
def silent(server: Server) -> Generator[None]:
    """It is there, and says nothing."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


async def test_all_of_it_at_once_then_one_by_one(rates: RedisRates) -> None:
    ten = [limit("tenant:{acme}/", 10, 3_600.0)]
    found = await asyncio.gather(*(rates.take(ten) for _ in range(30)))
    assert sum(one is None for one in found) == 10
    refused = await rates.take(ten)
    assert refused is not None
    assert 350e9 < refused.wait_ns <= 360e9
    assert refused.limit is ten[0]


async def test_a_call_that_one_limit_refuses_uses_nothing_of_the_others(rates: RedisRates) -> None:
    wide, narrow = limit("a:{t}/", 5, 3_600.0), limit("b:{t}/", 1, 3_600.0)
    assert await rates.take([wide, narrow]) is None
    for _ in range(20):
        refused = await rates.take([wide, narrow])
        assert refused is not None
        assert refused.limit is narrow
    assert [await rates.take([wide]) is None for _ in range(5)] == [True] * 4 + [False]


async def test_a_crowd_is_counted_to_the_last_call_and_nobody_is_sent_away_for_coming_together(
    rates: RedisRates,
) -> None:
    most = limit("tenant:{acme}/", 500, 3_600.0)

    async def caller(limits: list[Limit]) -> int:
        return sum([await rates.take(limits) is None for _ in range(10)])

    # Two tools of one tenant: each has limits of its own, and one that both use up.
    tools = [[most, limit(f"tool:{{acme}}/{name}", 350, 3_600.0)] for name in "ab"]
    found = await asyncio.gather(*(caller(tools[number % 2]) for number in range(100)))
    assert sum(found) == 500
    assert max(sum(found[0::2]), sum(found[1::2])) <= 350


async def test_of_calls_that_come_together_each_hears_what_its_own_limits_say(
    rates: RedisRates,
) -> None:
    few, many = [limit("tenant:{few}/", 2, 3_600.0)], [limit("tenant:{many}/", 9, 3_600.0)]
    found = await asyncio.gather(*(rates.take(one) for one in (few, many) * 5))
    assert found[1::2] == [None] * 5
    # Who came first goes first.
    assert found[0:4:2] == [None] * 2
    for refused in found[4::2]:
        assert refused is not None
        assert refused.limit is few[0]


async def test_a_server_that_was_emptied_is_told_the_script_again(
    rates: RedisRates, own: Server
) -> None:
    some = [[limit(f"tenant:{{{name}}}/", 3, 3_600.0)] for name in "abc"]
    for alone_or_not in (some[:1], some):
        await said(own, b"SCRIPT FLUSH")
        await said(own, b"FLUSHALL")
        found = await asyncio.gather(*(rates.take(one) for one in alone_or_not * 4))
        assert found.count(None) == 3 * len(alone_or_not)


async def test_what_is_spoilt_for_one_is_not_for_who_comes_with_it(
    rates: RedisRates, own: Server
) -> None:
    spoilt, sound = [limit("tenant:{spoilt}/", 3, 60.0)], [limit("tenant:{sound}/", 3, 60.0)]
    await said(own, b"RPUSH toolgate:tests:rate:tenant:{spoilt}/ garbage")
    asked = (rates.take(spoilt), rates.take(sound))
    refused, passed = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(refused, LimitsUnavailable)
    assert passed is None
    with pytest.raises(LimitsUnavailable):
        await rates.take(spoilt)


async def said(server: Server, command: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(command + b"\r\n")
    assert (await reader.readuntil(b"\r\n"))[:1] in {b"+", b":"}
    writer.close()
    await writer.wait_closed()


async def test_keys_go_by_themselves_and_names_are_bounded(rates: RedisRates, own: Server) -> None:
    long = limit("persona:{acme}/" + "p" * 10_000, 1, 0.05)
    assert await rates.take([long]) is None

    async def is_empty() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", own.port)
        writer.write(b"KEYS *\r\n")
        told = await reader.readuntil(b"\r\n")
        keys = [await reader.readuntil(b"\r\n") for _ in range(2 * int(told[1:]))]
        writer.close()
        await writer.wait_closed()
        assert all(len(key) < 300 for key in keys)
        return not keys

    await eventually(is_empty)


async def test_a_server_that_forgets_everything_allows_no_more_than_one_burst_again(
    rates: RedisRates, own: Server
) -> None:
    ten = [limit("tenant:{acme}/", 10, 3_600.0)]
    for _ in range(12):
        await rates.take(ten)
    own.stop()
    own.start()

    async def answers() -> bool:
        try:
            return await rates.take(ten) is None
        except LimitsUnavailable:
            return False

    await eventually(answers)
    assert sum([await rates.take(ten) is None for _ in range(30)]) == 9


async def test_while_it_is_away_reads_have_a_part_and_side_effects_are_refused(
    own: Server, tmp_path: Path
) -> None:
    async with open_limited(tmp_path, redis=own.url, tenant="40/hour", processes=4) as gate:
        gate.add(look, put, send)
        assert await outcomes(gate, "look", 3) == ["success"] * 3
        own.stop()
        found = await outcomes(gate, "look", 100)
        assert (found.count("success"), found.count("rate_limited")) == (10, 90)
        assert await outcomes(gate, "put", 5) == ["limits_unavailable"] * 5
        assert await outcomes(gate, "send", 5) == ["limits_unavailable"] * 5
        own.start()

        async def heals() -> bool:
            return await outcome(gate, "put") == "success"

        await eventually(heals)


async def test_without_a_limit_nobody_misses_it(own: Server, tmp_path: Path) -> None:
    async with open_limited(tmp_path, redis=own.url) as gate:
        gate.add(look, send)
        own.stop()
        assert await outcomes(gate, "look", 20) == ["success"] * 20
        assert await outcome(gate, "send") == "success"
        own.start()


async def test_a_server_that_hangs_holds_up_a_few_calls_shortly_and_then_none(
    own: Server, tmp_path: Path
) -> None:
    async with open_limited(tmp_path, redis=own.url, tenant="100/hour") as gate:
        gate.add(look, put)
        assert await outcome(gate, "put") == "success"
        loop = asyncio.get_running_loop()
        with silent(own):
            began = loop.time()
            for _ in range(3):
                assert await outcome(gate, "put") == "limits_unavailable"
            waited = loop.time() - began
            began = loop.time()
            for _ in range(3):
                assert await outcome(gate, "put") == "limits_unavailable"
            at_once = loop.time() - began
        # Three waits of a quarter of a second open the breaker; then nobody waits.
        assert waited < 5
        assert at_once < waited / 2


async def test_four_processes_at_twice_the_limit_let_through_what_one_would(
    own: Server, tmp_path: Path
) -> None:
    rate, seconds = 50, 8
    given = {
        "root": str(tmp_path),
        "url": f"sqlite:///{tmp_path / 'shared.db'}",
        "redis": own.url,
        "tool": f"{rate}/second",
    }
    async with open_limited(tmp_path, url=given["url"]):
        pass
    arguments = ("press", orjson.dumps(given).decode(), "mark", str(2 * rate // 4), str(seconds))
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(*arguments)) for _ in range(4)]
        assert [hear(one) for one in workers] == ["ready"] * 4
        for one in workers:
            tell(one)
        found = [orjson.loads(hear(one)) for one in workers]
    passed = sorted(at for mine, _ in found for at in mine)
    used_up = min(at for _, theirs in found for at in theirs)
    # From when the burst was used up, to the last one.
    steady = [at for at in passed if at > used_up]
    expected = 1 + rate * (steady[-1] - steady[0])
    assert len(steady) > rate
    assert abs(len(steady) - expected) <= max(0.02 * expected, 3)
    # However a window of a second is laid, the edge of it lets no more than twice as many through.
    busiest = max(
        sum(1 for at in passed[first:] if at < start + 1) for first, start in enumerate(passed)
    )
    assert busiest <= 2 * rate * 1.02
