"""Workers that are killed between the fetch of a message and the claim of its call."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard
from tests.servers.kafka import Kafka
from toolgate import Toolgate

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6", "S2"), pytest.mark.timeout(180)]
KILLED = -9
SECRET = "s3cret-of-the-crm"  # noqa: S105  of this test
PRODUCER = """
[queue.producers.crm]
secret_env = "CRM_SECRET"
tenants = ["acme"]
"""
# As the yard has it, and what a group needs to see that a member is gone, and to share anew.
LEASE, MORE = 2, 30


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Generator[Yard]:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    with Yard(tmp_path, kafka.address, more=PRODUCER) as place:
        yield place


def theirs(text: str) -> dict[str, Any]:
    """A call of another system: until it is adopted, it is in no store."""
    caller = {"tenant": "acme", "agent": "billing"}
    return {
        "version": 1,
        "id": f"crm_call_{text}",
        "tool": "pay",
        "args": {"text": text},
        "caller": caller,
    }


async def killed(yard: Yard, point: str) -> None:
    victim = yard.command("worker", TOOLGATE_CRASH_AT=point)
    assert await asyncio.to_thread(victim.wait, 60) == KILLED, yard.log


async def is_done(gate: Toolgate) -> bool:
    """Whether nothing is open, and nothing is dead."""
    depth = await gate.queue.calls.depth()
    return not (depth.waiting or depth.sent or depth.taken or depth.dead)


# A call of ours that has begun when its worker is killed is another promise.
@pytest.mark.parametrize(("point", "whose"), [("CP21", "ot"), ("CP22", "t")])
async def test_killed_with_what_it_fetched_another_worker_runs_it_once_in_time(
    point: str, whose: str, yard: Yard
) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        for number in range(4):
            if "o" in whose:
                text = {"text": f"o{number}"}
                assert (await gate.call("pay", text, caller=ME, wait_s=0)).status == "queued"
            await wire.sign(yard.requests, theirs(f"t{number}"), SECRET, by="crm")
        await killed(yard, point)
        died = time.monotonic()
        assert yard.marks() == {}
        yard.worker()
        wanted = {f"{one}{number}": 1 for one in whose for number in range(4)}
        while not await is_done(gate) or yard.marks() != wanted:
            assert time.monotonic() - died < LEASE + MORE, yard.marks()
            await asyncio.sleep(0.1)
        assert len(yard.hands()) == 1
        # What is brought again later finds them done.
        await wire.sign(yard.requests, theirs("t0"), SECRET, by="crm")
        await wire.sign(yard.requests, theirs("last"), SECRET, by="crm")
        await until(lambda: yard.marks() == {**wanted, "last": 1})


async def test_if_a_fetch_said_that_it_is_done_with_what_others_sent_would_be_lost(
    yard: Yard,
) -> None:
    async with yard.gate() as gate, Wire(yard) as wire:
        ours = await gate.call("pay", {"text": "o"}, caller=ME, wait_s=0)
        assert ours.status == "queued"
        await wire.sign(yard.requests, theirs("t"), SECRET, by="crm")
        await killed(yard, "CP21")
        await wire.pass_over(yard.requests, yard.name)
        yard.worker()
        await wire.sign(yard.requests, theirs("last"), SECRET, by="crm")
        # The store knows of our own, and has it sent once more.
        await until(lambda: yard.marks() == {"o": 1, "last": 1}, seconds=60)
        assert await gate.queue.calls.find("acme", "crm_call_t") is None
