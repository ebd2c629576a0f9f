"""Nodes and workers that die at named points, calls that come too late, and those that are dead."""

import asyncio
import time
from collections.abc import Generator
from pathlib import Path

import orjson
import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6", "S2"), pytest.mark.timeout(120)]
KILLED = -9


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka) -> Generator[Yard]:
    with Yard(tmp_path, kafka.address) as place:
        yield place


async def test_killed_once_it_is_queued_a_call_is_run_all_the_same(yard: Yard) -> None:
    words = ("--args", '{"text": "queued"}', "--tenant", "acme", "--agent", "billing")
    caller = yard.command("call", "pay", *words, TOOLGATE_CRASH_AT="CP15")
    assert await asyncio.to_thread(caller.wait, 40) == KILLED
    assert yard.marks() == {}
    yard.worker()
    await until(lambda: yard.marks() == {"queued": 1})


@pytest.mark.parametrize("point", ["CP16", "CP17", "CP18"])
async def test_killed_while_it_has_a_call_another_brings_it_to_its_end_once(
    point: str, yard: Yard
) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        victim = yard.command("worker", TOOLGATE_CRASH_AT=point)
        call = asyncio.ensure_future(gate.call("pay", {"text": "p"}, caller=ME))
        assert await asyncio.to_thread(victim.wait, 40) == KILLED
        assert yard.marks() == ({} if point == "CP16" else {"p": 1})
        yard.worker()
        output = await call
        assert (output.status, output.data, output.cached) == ("success", {"marked": "p"}, False)
        assert yard.marks() == {"p": 1}
        # Those who read results hear of it, too: by whoever ended it, or later.
        assert output.call_id in await wire.read(yard.results, 1)


async def test_taken_too_often_over_restarts_a_call_is_dead_and_told_as_such(yard: Yard) -> None:
    yard.change("[queue]", "[queue]\nattempts = 2")
    async with yard.gate() as gate, Wire(yard) as wire:
        output = await gate.call("pay", {"text": "p"}, caller=ME, wait_s=0)
        for _ in range(2):
            victim = yard.command("worker", TOOLGATE_CRASH_AT="CP16")
            assert await asyncio.to_thread(victim.wait, 40) == KILLED
        yard.worker()
        (found,) = await over(gate, [output.call_id])
        assert (found.stage, found.attempts) == ("dead", 2)
        assert "taken 2 times and never came to an end" in found.why
        assert yard.marks() == {}
        (letter,) = [orjson.loads(one.value) for one in await wire.records(yard.dead, 1)]
        assert (letter["id"], letter["tool"], letter["attempts"]) == (output.call_id, "pay", 2)
        (told,) = [orjson.loads(one.value) for one in await wire.records(yard.results, 1)]
        assert told["output"]["error"]["code"] == "undelivered"


async def test_a_call_whose_time_is_over_is_not_run_and_is_on_record_as_such(yard: Yard) -> None:
    async with yard.gate(expires=1) as gate:
        output = await gate.call("pay", {"text": "p"}, caller=ME, wait_s=0)
        before = await gate.queue.calls.find("acme", output.call_id)
        assert before is not None
    await until(lambda: time.time_ns() > before.expires_ns)
    async with yard.gate(work="always") as gate:
        (found,) = await over(gate, [output.call_id])
        assert found.stage == "done"
        assert b"out_of_time" in found.output
        assert yard.marks() == {}
    async with yard.gate(work="never") as gate:
        entry = await gate.journal.find("acme", output.call_id)
        assert entry is not None
        assert entry.state == "expired"
