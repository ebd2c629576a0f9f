"""Side effects that a worker began and never ended: the queue brings them on, nobody else does."""

import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import orjson
import pytest

from tests.house import ME, until
from tests.queue.yard import Yard, over
from toolgate import Toolgate

pytestmark = [pytest.mark.req("P6", "S2"), pytest.mark.timeout(120)]
KILLED = -9
# A node that runs nothing itself.
NODE = {"work": "never"}


@pytest.fixture
def yard(tmp_path: Path) -> Generator[Yard]:
    """Without a broker: the store carries them itself."""
    with Yard(tmp_path, "") as place:
        yield place


async def killed(yard: Yard, point: str) -> None:
    """A worker that dies at a point, and has died."""
    victim = yard.command("worker", TOOLGATE_CRASH_AT=point)
    assert await asyncio.to_thread(victim.wait, 60) == KILLED, yard.log


async def looked(gate: Toolgate, call_id: str, state: str) -> None:
    """The node looks after what is lost until this call is so on record."""
    async with asyncio.timeout(60):
        while (await gate.find("acme", call_id)).entry.state != state:  # pyright: ignore[reportOptionalMemberAccess]
            await gate.recovery.sweep()
            await asyncio.sleep(0.1)


async def test_what_a_worker_began_is_gone_on_with_by_a_worker_and_its_caller_hears(
    yard: Yard,
) -> None:
    async with yard.gate(**NODE) as gate:
        call = asyncio.ensure_future(gate.call("held", {"text": "h"}, caller=ME, wait_s=60))
        worker = yard.worker()
        await until(lambda: yard.marks() == {"began-h": 1})
        worker.kill()
        worker.wait()
        # Twice as long as its lease: the node has found it, and leaves it.
        for _ in range(40):
            await gate.recovery.sweep()
            await asyncio.sleep(0.1)
        assert yard.marks() == {"began-h": 1}
        yard.go()
        yard.worker()
        output = await call
        assert (output.status, output.data) == ("success", {"marked": "h"})
    assert yard.marks() == {"began-h": 2, "h": 1}
    assert str(os.getpid()) not in yard.hands()


async def test_without_a_look_into_the_queue_the_node_would_run_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with yard.gate(**NODE) as gate:
        await gate.call("held", {"text": "h"}, caller=ME, wait_s=0)
        worker = yard.worker()
        await until(lambda: yard.marks() == {"began-h": 1})
        monkeypatch.setattr(gate.recovery, "_queue", None)
        worker.kill()
        worker.wait()
        yard.go()
        await until(lambda: yard.marks()["h"] == 1)
        assert str(os.getpid()) in yard.hands()


async def test_what_is_dead_is_not_run_by_anybody_and_is_called_unknown(yard: Yard) -> None:
    yard.change("[queue]", "[queue]\nattempts = 2")
    yard.go()
    async with yard.gate(**NODE) as gate:
        asked = await gate.call("held", {"text": "h"}, caller=ME, wait_s=0)
        for _ in range(2):
            await killed(yard, "CP6")
        assert yard.marks() == {"began-h": 2, "h": 2}, "it may be repeated, and was"
        yard.worker()
        (found,) = await over(gate, [asked.call_id])
        assert found.stage == "dead"
        told = orjson.loads(found.output)
        assert (told["status"], told["error"]["code"]) == ("unknown", "undelivered")
        await looked(gate, asked.call_id, "unknown")
        assert yard.marks() == {"began-h": 2, "h": 2}
        # Tried once more, it is answered by what is on record: an operator settles that.
        assert await gate.queue.dead.again("acme", asked.call_id, who="ann", why="once more")
        (found,) = await over(gate, [asked.call_id])
        told = orjson.loads(found.output)
        assert (told["status"], told["error"]["code"]) == ("unknown", "outcome_unknown")
        assert yard.marks() == {"began-h": 2, "h": 2}


async def test_what_failed_and_is_brought_again_is_told_as_it_failed(yard: Yard) -> None:
    async with yard.gate(**NODE) as gate:
        call = asyncio.ensure_future(gate.call("refuse", {"text": "r"}, caller=ME, wait_s=60))
        await killed(yard, "CP17")
        yard.worker()
        output = await call
        assert output.error is not None
        assert output.error.message == "The far side says no."
        assert yard.marks() == {"r": 1}
