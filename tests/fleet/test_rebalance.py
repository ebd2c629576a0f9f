"""Many messages, four workers, and a fifth that comes and goes: the partitions change hands.

Between them is poison. Marks say what happened, before any answer is believed.
"""

import asyncio
import contextlib
from collections.abc import Generator
from pathlib import Path

import orjson
import pytest

from tests.fleet.nodes import made_database
from tests.fleet.partitions import Partitions
from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres
from tests.thorough import some
from toolgate import Toolgate

needs("aiokafka", "an extra")
MESSAGES, POISON, EVERY = some((1_500, 100, 3.0), (50_000, 200, 20.0))
# So that the workers are at it for some changes of hands, however fast the machine is.
RATE = some(150.0, 400.0)
# How often another worker has come and gone; a busy machine is slow to start one.
CHANGES = some(1, 3)
WORKERS = 4
# Calls of one account go one after the other: few of them would be the measure of all.
ACCOUNTS = some(100, 1_000)
AT_ONCE = 25
STALLED = 30.0
LONGEST = some(240, 1_800)
pytestmark = [pytest.mark.req("P6", "D2"), pytest.mark.timeout(LONGEST + 60)]
# A server has a hundred connections for all six of them.
STORE = """
[store]
url = "{url}"
connections = 12
"""


@pytest.fixture
def yard(
    tmp_path: Path, kafka: Kafka, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> Generator[Yard]:
    # On a machine that is busy no call is given up that takes long to be queued,
    monkeypatch.setattr("toolgate.executor.queued._MARGIN", STALLED)
    monkeypatch.setattr("toolgate.executor.queued._MARGIN_NS", round(STALLED * 1e9))
    more = STORE.format(url=made_database(postgres))
    queue = "waiting = 1_000_000\ntenant_waiting = 1_000_000"
    with Yard(tmp_path, kafka.address, queue=queue, more=more) as place:
        # and no lease is lost.
        place.change("lease = 2", "lease = 30")
        yield place


async def test_each_effect_happens_once_while_partitions_change_hands(yard: Yard) -> None:
    async with yard.gate() as gate, Wire(yard) as wire, Partitions(yard) as partitions:
        await asyncio.gather(*(asyncio.to_thread(yard.worker) for _ in range(WORKERS)))
        watching = asyncio.create_task(partitions.watch())
        changing = asyncio.create_task(_changed(yard))
        async with asyncio.timeout(LONGEST):
            await _fed(gate, wire, yard, partitions)
            # Poison holds up nobody: the last of it may be met after the last call has ended.
            while await _open(gate) or await _dead(gate) < POISON:  # noqa: ASYNC110  the store tells nobody
                await asyncio.sleep(0.2)
        changes = await _ended(changing)
        assert await _ended(watching) > changes
        assert changes >= CHANGES
        assert partitions.members >= WORKERS
        assert partitions.longest < STALLED
        _check(yard)
        assert await _dead(gate) == POISON
        letters = await wire.read(yard.dead, POISON)
        assert {name.rpartition("/")[0].rpartition("/")[0] for name in letters} == {yard.requests}


async def _fed(gate: Toolgate, wire: Wire, yard: Yard, partitions: Partitions) -> None:
    """At a steady rate, and every so often what no worker can read.

    The last third is for five: on a busy machine the fifth may be late.
    """
    for start in range(0, MESSAGES, AT_ONCE):
        if start > MESSAGES * 2 // 3:
            await until(lambda: partitions.members > WORKERS, seconds=LONGEST)
        pause = asyncio.create_task(asyncio.sleep(AT_ONCE / RATE))
        for number in range(start, start + AT_ONCE):
            if number % (MESSAGES // POISON) == 0:
                await wire.send(yard.requests, _poison(number))
        await asyncio.gather(*(_queued(gate, number) for number in range(start, start + AT_ONCE)))
        await pause


async def _queued(gate: Toolgate, number: int) -> None:
    text = f"m{number}"
    if number % 2:
        args, tool = {"text": text}, "pay"
    else:
        args, tool = {"text": text, "account": f"a{number % (2 * ACCOUNTS)}"}, "post"
    output = await gate.call(tool, args, caller=ME, wait_s=0)
    assert output.status == "queued", output


async def _dead(gate: Toolgate) -> int:
    return (await gate.queue.calls.depth()).dead


def _poison(number: int) -> bytes:
    stranger = {"version": 1, "id": f"stranger_{number}", "tool": "pay", "args": {"text": "x"}}
    kinds = (
        b"{no json",
        b"",
        b"\xff\xfe",
        orjson.dumps({**stranger, "caller": {"tenant": "acme"}}),
        orjson.dumps({**stranger, "version": 2}),
    )
    return kinds[number // (MESSAGES // POISON) % len(kinds)]


async def _changed(yard: Yard) -> int:
    """A fifth comes, has its part of the work, and goes; how often that changed who has what."""
    changes = 0
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            fifth = await asyncio.to_thread(yard.worker)
            changes += 1
            await asyncio.sleep(EVERY)
            await until(lambda: len(yard.hands()) > WORKERS, seconds=LONGEST)
            fifth.terminate()
            assert await asyncio.to_thread(fifth.wait, 30) == 0
            changes += 1
            await asyncio.sleep(EVERY)
    return changes


async def _open(gate: Toolgate) -> int:
    depth = await gate.queue.calls.depth()
    return depth.waiting + depth.sent + depth.taken


async def _ended(task: "asyncio.Task[int]") -> int:
    task.cancel()
    return await task


def _check(yard: Yard) -> None:
    marks = yard.marks()
    assert marks == {f"m{number}": 1 for number in range(MESSAGES)}
    # In CI it may come when little is left to do.
    assert len(yard.hands()) >= WORKERS + some(0, 1), "the fifth did nothing"
    posted: dict[int, list[int]] = {}
    for text in yard.order():
        number = int(text[1:])
        if not number % 2:
            posted.setdefault(number % (2 * ACCOUNTS), []).append(number)
    assert len(posted) == ACCOUNTS
    for account, numbers in posted.items():
        assert numbers == sorted(numbers), f"a{account} was overtaken"
