"""A call that a worker process runs over Kafka, followed at every door of the node."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest

from tests.house import until
from tests.late import needs
from tests.mcp.house import House, opened
from tests.mcp.tasking import Desk
from tests.queue.yard import Yard
from tests.servers.kafka import Kafka
from toolgate.settings.settings import Mcp

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6", "V1", "V2"), pytest.mark.timeout(120)]


class Door(NamedTuple):
    """A node that works at nothing, and a worker beside it."""

    yard: Yard
    house: House
    http: aiohttp.ClientSession

    def to(self, path: str) -> str:
        return self.house.url.removesuffix("/mcp") + path

    async def began(self, text: str) -> None:
        await until(lambda: f"began-{text}" in self.yard.marks(), seconds=60)


@pytest.fixture
async def door(tmp_path: Path, kafka: Kafka) -> AsyncGenerator[Door]:
    with Yard(tmp_path, kafka.address) as yard:
        settings = yard.settings().model_copy(update={"mcp": Mcp(task_after=0.01)})
        async with opened(tmp_path, settings=settings) as house:
            yard.worker()
            given = {"Authorization": f"Bearer {house.ann}"}
            async with aiohttp.ClientSession(headers=given) as http:
                yield Door(yard, house, http)


async def test_it_is_asked_for_by_its_id(door: Door) -> None:
    body = {"tool": "held", "args": {"text": "a"}, "wait_s": 0}
    async with door.http.post(door.to("/v1/call"), json=body) as answer:
        told = await answer.json()
    assert told["status"] == "queued"
    await door.began("a")
    of = door.to(f"/v1/calls/{told['call_id']}")
    async with door.http.get(of) as answer:
        assert (await answer.json())["queue"]["stage"] == "taken"
    door.yard.go()
    async with door.http.get(of, params={"wait_s": "30"}) as answer:
        shown = await answer.json()
    assert (shown["state"], shown["output"]["data"]) == ("succeeded", {"marked": "a"})


async def test_its_stream_tells_the_id_and_then_the_result(door: Door) -> None:
    events: list[tuple[str, Any]] = []

    async def follow() -> None:
        sent = {"Accept": "text/event-stream"}
        body = {"tool": "held", "args": {"text": "b"}}
        name = ""
        async with door.http.post(door.to("/v1/call"), json=body, headers=sent) as answer:
            async for line in answer.content:
                if line.startswith(b"event: "):
                    name = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    events.append((name, orjson.loads(line[6:])))

    following = asyncio.create_task(follow())
    await door.began("b")
    assert [name for name, _ in events] == ["queued"]
    door.yard.go()
    await following
    (_, queued), *_, (_, last) = events
    assert last["data"] == {"marked": "b"}
    assert last["call_id"] == queued["call_id"]


async def test_its_task_is_completed_when_the_worker_is_done(door: Door) -> None:
    desk = Desk(door.house)
    made = await desk.call("held", {"text": "c"})
    await door.began("c")
    assert (await desk.get(made))["status"] == "working"
    door.yard.go()
    over = await desk.over(made)
    assert over["result"]["structuredContent"] == {"marked": "c"}
    assert door.yard.marks()["c"] == 1
