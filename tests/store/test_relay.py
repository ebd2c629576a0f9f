"""Events between nodes: told to listeners elsewhere, once, and by nobody but nodes of the house."""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import hmac
from collections.abc import AsyncGenerator
from typing import NamedTuple

import pytest
from redis.asyncio import Redis as Client

from tests.house import until
from tests.servers.redis import Redis as Server
from toolgate.call import Event
from toolgate.executor.people.bus import LOST, Bus, Subscription
from toolgate.store.redis import PREFIX
from toolgate.store.relay import RedisRelay

pytestmark = pytest.mark.req("S7", "D2")
SECRET = b"s" * 32


class Node(NamedTuple):
    bus: Bus
    relay: RedisRelay


def node(url: str, secret: bytes = SECRET) -> Node:
    bus = Bus()
    bus.relay = relay = RedisRelay(url, "here", secret, bus)
    return Node(bus, relay)


@pytest.fixture
async def pair(redis_server: Server) -> AsyncGenerator[tuple[Node, Node]]:
    made = node(redis_server.url), node(redis_server.url)
    yield made
    for one in made:
        await one.relay.close()


def event(number: int, tenant: str = "acme") -> Event:
    return Event(
        id=f"evt_{number}",
        kind="side_effect.completed",
        at_ns=number,
        tenant=tenant,
        agent="billing",
        tool="act",
        call_id=f"call_{number}",
        payload={"args": {"text": "x"}},
    )


def believed(*_: object) -> bool:
    """The guard, taken out."""
    return True


async def told(news: Subscription, count: int) -> list[str]:
    return [(await anext(news)).id for _ in range(count)]


async def test_what_one_node_tells_is_heard_at_both_once_and_in_order(
    pair: tuple[Node, Node],
) -> None:
    one, two = pair
    here, there = one.bus.subscribe("acme"), two.bus.subscribe("acme")
    await here.ready()
    await there.ready()
    expected = [f"evt_{number}" for number in range(250)]
    for number in range(250):
        await one.bus.publish(event(number))
        await one.bus.publish(event(1_000 + number, "umbrella"))
    async with asyncio.timeout(20):
        assert await told(here, 250) == expected
        assert await told(there, 250) == expected
        await two.bus.publish(event(7_000))
        assert await told(here, 1) == await told(there, 1) == ["evt_7000"]


async def test_who_only_reaches_redis_tells_nobody_anything(
    pair: tuple[Node, Node], redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    stranger = node(redis_server.url, b"another secret, of another house")
    there = two.bus.subscribe("acme")
    await there.ready()
    raw = Client.from_url(redis_server.url)
    try:
        for message in (b"", b"x" * 31, b"x" * 500, b"{}"):
            await raw.publish(f"{PREFIX}here:events", message)
        await stranger.bus.publish(event(666))
        await stranger.relay.close()
        await one.bus.publish(event(1))
        async with asyncio.timeout(20):
            assert await told(there, 1) == ["evt_1"]
        # The guard-off control.
        stranger = node(redis_server.url, b"another secret, of another house")
        with monkeypatch.context() as off:
            off.setattr(hmac, "compare_digest", believed)
            await stranger.bus.publish(event(666))
            async with asyncio.timeout(20):
                assert await told(there, 1) == ["evt_666"]
    finally:
        await stranger.relay.close()
        await raw.aclose()


async def test_what_may_have_been_missed_is_told_as_lost(redis_server: Server) -> None:
    with Server() as own:
        one, two = node(own.url), node(own.url)
        there = two.bus.subscribe()
        await there.ready()
        own.stop()
        await one.bus.publish(event(1))
        # Its own listeners hear of it all the same.
        own.start()
        async with asyncio.timeout(30):
            assert (await anext(there)).kind == LOST
        await there.ready()
        heard = list[str]()

        async def read() -> None:
            async for one_ in there:
                heard.append(one_.id)

        reading = asyncio.create_task(read())
        number = 10

        def is_heard() -> bool:
            nonlocal number
            number += 1
            one.relay.send(event(number))
            return any(id_.startswith("evt_1") for id_ in heard)

        await until(is_heard)
        reading.cancel()
        for each in (one, two):
            await each.relay.close()
