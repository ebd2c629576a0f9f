"""Redis between nodes, on a real server: what it keeps, what it passes on, and what it survives."""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import pytest
from redis.asyncio import Redis as Client

from tests.house import until
from tests.servers.process import LOOPBACK, free_port
from tests.servers.redis import Redis
from toolgate.errors import SettingsInvalid
from toolgate.gate.shared import (
    NoShared,
    Shared,
    permission_key,
)
from toolgate.store.redis import CHANNEL, RedisShared

pytestmark = pytest.mark.req("G8", "D2")
KEY = permission_key("acme", "helper", "sha256:00")


@asynccontextmanager
async def shared_at(url: str, *hear: Callable[[int], None]) -> AsyncGenerator[RedisShared]:
    shared = RedisShared(url)
    for on_change in hear:
        shared.subscribe(on_change)
    shared.start()
    try:
        yield shared
    finally:
        await shared.close()


@asynccontextmanager
async def operator(server: Redis) -> AsyncGenerator[Client]:
    client = Client.from_url(server.url)
    try:
        yield client
    finally:
        await client.aclose()


@pytest.fixture
async def shared(redis_server: Redis) -> AsyncGenerator[RedisShared]:
    async with operator(redis_server) as client:
        await client.flushall()
    async with shared_at(redis_server.url) as opened:
        yield opened


@contextmanager
def frozen(server: Redis) -> Generator[None]:
    """The server takes connections, as the kernel does for it, and answers nothing."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


async def until_heard(shared: RedisShared) -> None:
    """Put until it stays: the server may be left alone for a moment."""
    while await shared.get(KEY) != b"1":
        await shared.put(KEY, b"1", 60)
        await asyncio.sleep(0.01)


async def test_what_one_node_puts_another_gets(shared: RedisShared, redis_server: Redis) -> None:
    async with shared_at(redis_server.url) as other:
        assert await other.get(KEY) is None
        await shared.put(KEY, b"1", 60)
        assert await other.get(KEY) == b"1"
        await other.put(KEY, b"0", 60)
        assert await shared.get(KEY) == b"0"
        assert shared.health().ok


async def test_it_is_gone_after_its_time(shared: RedisShared, redis_server: Redis) -> None:
    await shared.put(KEY, b"1", 1)
    assert await shared.get(KEY) == b"1"
    async with operator(redis_server) as client:
        assert 0 < await client.pttl(f"toolgate:{KEY}") <= 1_000
    gone = False
    while not gone:
        gone = await shared.get(KEY) is None


@pytest.mark.parametrize("ttl", [0, -1, 0.0001])
async def test_nothing_is_kept_for_ever(
    shared: RedisShared, redis_server: Redis, ttl: float
) -> None:
    await shared.put(KEY, b"1", ttl)
    async with operator(redis_server) as client:
        assert await client.pttl(f"toolgate:{KEY}") != -1
    assert shared.health().ok


async def test_what_is_too_large_is_neither_put_nor_taken(
    shared: RedisShared, redis_server: Redis
) -> None:
    await shared.put(KEY, b"x" * (1024 * 1024 + 1), 60)
    assert await shared.get(KEY) is None
    async with operator(redis_server) as client:
        await client.set(f"toolgate:{KEY}", b"x" * (1024 * 1024 + 1))
    assert await shared.get(KEY) is None
    await shared.put(KEY, b"x" * 1024 * 1024, 60)
    assert await shared.get(KEY) == b"x" * 1024 * 1024


async def test_garbage_is_a_miss_or_comes_as_the_bytes_it_is(
    shared: RedisShared, redis_server: Redis
) -> None:
    async with operator(redis_server) as client:
        for garbage in (b"\xff\x00", b"", b"true", b"1 ", b"[" * 10_000):
            await client.set(f"toolgate:{KEY}", garbage)
            assert await shared.get(KEY) == garbage
        await client.delete(f"toolgate:{KEY}")
        await client.lpush(f"toolgate:{KEY}", "1")
        assert await shared.get(KEY) is None, "a list is no value"
    assert not shared.health().ok


async def test_a_flushed_server_is_an_empty_one(shared: RedisShared, redis_server: Redis) -> None:
    await shared.put(KEY, b"1", 60)
    async with operator(redis_server) as client:
        await client.flushall()
    assert await shared.get(KEY) is None
    assert shared.health().ok
    await shared.put(KEY, b"1", 60)
    assert await shared.get(KEY) == b"1"


async def test_a_server_that_goes_away_is_a_miss_and_comes_back(
    shared: RedisShared, redis_server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    await shared.put(KEY, b"1", 60)
    redis_server.stop()
    try:
        for _ in range(3):
            assert await shared.get(KEY) is None
            await shared.put(KEY, b"1", 60)
            await shared.announce(5)
        health = shared.health()
        assert (health.engine, health.ok) == ("redis", False)
        assert "this node decides by itself" in health.problem
        assert str(redis_server.port) not in health.problem + caplog.text
    finally:
        redis_server.start()
    await until_heard(shared)
    assert shared.health().ok
    assert caplog.text.count("Redis does not answer") == 1
    assert caplog.text.count("Redis answers again") == 1


async def test_a_server_that_hangs_is_a_miss_and_its_late_answers_reach_nobody(
    shared: RedisShared, redis_server: Redis
) -> None:
    keys = [permission_key("acme", "helper", str(number)) for number in range(40)]
    for number, key in enumerate(keys):
        await shared.put(key, str(number).encode(), 600)
    with frozen(redis_server):
        late = await asyncio.gather(*(shared.get(key) for key in keys))
        assert late == [None] * 40
        assert not shared.health().ok
    await until_heard(shared)
    found = await asyncio.gather(*(shared.get(key) for key in keys))
    assert found == [str(number).encode() for number in range(40)]


async def test_a_caller_who_goes_away_leaves_no_answer_for_the_next(shared: RedisShared) -> None:
    """The answer to one question must never be read as the answer to another."""
    yes, no = permission_key("acme", "", "yes"), permission_key("acme", "", "no")
    await shared.put(yes, b"1", 600)
    await shared.put(no, b"0", 600)
    for steps in range(60):
        leaving = asyncio.ensure_future(shared.get(yes))
        for _ in range(steps % 12):
            await asyncio.sleep(0)
        leaving.cancel()
        assert await shared.get(no) == b"0"
        await asyncio.gather(leaving, return_exceptions=True)
    assert await shared.get(yes) == b"1"


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"$abc\r\n", b":\r\n", b"*9" * 50 + b"\r\n"],
)
async def test_a_server_that_talks_nonsense_is_a_miss(answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()
        writer.close()

    port = free_port()
    heard: list[int] = []
    async with (
        await asyncio.start_server(talk, LOOPBACK, port),
        shared_at(f"redis://{LOOPBACK}:{port}", heard.append) as shared,
    ):
        assert await shared.get(KEY) is None
        await shared.put(KEY, b"1", 60)
        await shared.announce(1)
        assert not shared.health().ok
    assert heard == []


async def test_a_notice_reaches_every_node(redis_server: Redis) -> None:
    one, other = list[int](), list[int]()
    async with (
        shared_at(redis_server.url, one.append),
        shared_at(redis_server.url, other.append),
        shared_at(redis_server.url) as third,
    ):
        await until(lambda: one == [0] and other == [0])
        for revision in (7, 8, 0, 9):
            await third.announce(revision)
        await until(lambda: one == other == [0, 7, 8, 0, 9])


async def test_a_subscriber_that_fails_deafens_nobody(
    redis_server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(revision: int) -> None:
        raise RuntimeError(revision)

    heard: list[int] = []
    async with shared_at(redis_server.url, fails, heard.append) as shared:
        await until(lambda: heard == [0])
        await shared.announce(7)
        await until(lambda: heard == [0, 7])
    assert "could not be passed on (RuntimeError)" in caplog.text


async def test_only_a_revision_is_taken_from_the_channel(redis_server: Redis) -> None:
    heard: list[int] = []
    async with shared_at(redis_server.url, heard.append), operator(redis_server) as client:
        await until(lambda: heard == [0])
        for garbage in (
            b"",
            b"00",
            b"-1",
            b"1.5",
            b" 7",
            b"7\n",
            b"1e3",
            b"9" * 20,
            b"\xff",
            "\u0667",
        ):
            await client.publish(CHANNEL, garbage)
        await client.publish(CHANNEL, b"7")
        await until(lambda: heard == [0, 7])


async def test_listening_begins_anew_after_an_outage_and_says_that_some_may_be_missed(
    redis_server: Redis,
) -> None:
    heard: list[int] = []
    async with shared_at(redis_server.url, heard.append) as shared:
        await until(lambda: heard == [0])
        redis_server.stop()
        try:
            await until(lambda: not shared.health().ok)
        finally:
            redis_server.start()
        await until(lambda: heard == [0, 0])
        await shared.announce(7)
        await until(lambda: heard == [0, 0, 7])
        assert shared.health().ok


async def test_a_server_that_falls_silent_is_noticed(redis_server: Redis) -> None:
    heard: list[int] = []
    async with shared_at(redis_server.url, heard.append) as shared:
        await until(lambda: heard == [0])
        with frozen(redis_server):
            await until(lambda: "not heard of" in shared.health().problem)
        await until(lambda: heard == [0, 0])
        assert shared.health().ok


@pytest.mark.parametrize(
    "url", ["redis://:hunter2@host:port", "hunter2://x", "redis://h?socket_timeout=hunter2"]
)
def test_a_url_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        RedisShared(url)
    assert "hunter2" not in str(refused.value)
    assert "cache.url" in str(refused.value)


def test_keys_are_as_the_operators_know_them() -> None:
    assert permission_key("acme", "helper", "00ff") == "tool:permission:acme:helper:00ff"


def test_no_two_questions_share_a_key() -> None:
    long = "x" * 1_000
    parts = ["", "a", "a:b", "b", "%3A", ":", "a%3Ab", "é", "\udcff", "\\udcff", "\0", long]
    parts += [long + "x", permission_key("", "", long).rpartition(":")[2]]
    keys = {permission_key(t, p, q) for t in parts for p in parts for q in parts}
    assert len(keys) == len(parts) ** 3
    plain = {f"tool:permission:{t}:{p}:{q}" for t in parts for p in parts for q in parts}
    assert len(plain) < len(keys), "names put together as they are would be mistaken"
    assert max(map(len, keys)) < 300
    assert all(key.isascii() and key.isprintable() and " " not in key for key in keys)


async def test_a_node_on_its_own_shares_nothing() -> None:
    alone: Shared = NoShared()
    heard: list[int] = []
    alone.subscribe(heard.append)
    await alone.put(KEY, b"1", 60)
    await alone.announce(7)
    assert await alone.get(KEY) is None
    assert heard == []
    assert alone.health().ok
