"""The queue in `/metrics`: what waits, what nobody holds, how calls ended."""

import asyncio
from pathlib import Path

import pytest

from tests.house import ME, until
from toolgate import Toolgate, tool
from toolgate.errors import StoreError
from toolgate.queue.queue import Depth
from toolgate.settings.fleet import Fleet
from toolgate.settings.settings import Settings
from toolgate.telemetry import gauges
from toolgate.telemetry.gauges import Gauge, Look, read_all

pytestmark = pytest.mark.req("P6", "O1")


class Held:
    """A queued tool that ends when a test says so, and one that fails."""

    def __init__(self, gate: Toolgate) -> None:
        self.go = asyncio.Event()
        self.began = 0

        @tool(execution="queued", effect="pure")
        async def wait() -> str:
            """Wait."""
            self.began += 1
            await self.go.wait()
            return "done"

        @tool(execution="queued", effect="pure")
        async def fail() -> str:
            """Fail."""
            raise ValueError("no")

        gate.add(wait, fail)


async def numbers(gate: Toolgate) -> dict[str, float]:
    """Those of the queue, as they stand by now."""
    assert gate.watch.metrics is not None
    lines = (await gate.watch.metrics()).decode().splitlines()
    told = (line.rpartition(" ") for line in lines if line.startswith("toolgate_queue_"))
    return {name.removeprefix("toolgate_queue_"): float(value) for name, _, value in told}


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look is a new one."""
    monkeypatch.setattr(gauges, "_MOMENT_NS", -1)


async def test_what_waits_and_what_no_worker_holds_is_told(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, queue=Fleet(work="never"))
    async with Toolgate.open(settings) as gate:
        Held(gate)
        empty = await numbers(gate)
        assert empty == {
            'calls{state="waiting"}': 0,
            'calls{state="sent"}': 0,
            'calls{state="taken"}': 0,
            'calls{state="dead"}': 0,
            "unheld_calls": 0,
            "oldest_seconds": 0,
            "unheld_seconds": 0,
        }
        for _ in range(3):
            await gate.call("wait", caller=ME, wait_s=0)
        (held,) = await gate.queue.calls.take(1, 100.0)
        found = await numbers(gate)
        assert (found['calls{state="waiting"}'], found['calls{state="taken"}']) == (2, 1)
        assert found["unheld_calls"] == 2
        assert min(found["oldest_seconds"], found["unheld_seconds"]) > 0
        depth = await gate.queue.calls.depth()
        assert depth.oldest_ns < depth.unheld_ns
        await gate.queue.calls.renew([held], -1.0)
        lost = await numbers(gate)
        assert (lost["unheld_calls"], lost['calls{state="taken"}']) == (3, 1)


async def test_how_queued_calls_ended_is_counted_where_they_ran(tmp_path: Path) -> None:
    async with Toolgate.open(Settings(root=tmp_path)) as gate:
        held = Held(gate)
        calling = asyncio.create_task(gate.call("wait", caller=ME))
        await until(lambda: held.began == 1)
        running = await numbers(gate)
        assert (running['calls{state="taken"}'], running["unheld_calls"]) == (1, 0)
        held.go.set()
        assert (await calling).ok
        assert not (await gate.call("fail", caller=ME)).ok
        over = await numbers(gate)
        assert over['ended_total{status="success"}'] == over['ended_total{status="error"}'] == 1


async def test_one_look_is_for_all_gauges_and_all_who_ask_in_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gauges, "_MOMENT_NS", 1 << 62)
    looks = 0

    async def look() -> Depth:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return Depth(waiting=looks, sent=0, taken=0, dead=0)

    shared = Look(look)
    several = [Gauge(f"g{at}", "", shared.told(lambda one: {(): one.waiting})) for at in range(4)]
    each = await asyncio.gather(read_all(several), read_all(several))
    assert [reading.values for found in each for reading in found] == [{(): 1}] * 8
    assert looks == 1


async def test_a_store_that_is_away_is_asked_once_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gauges, "_MOMENT_NS", 1 << 62)
    looks = 0

    async def look() -> Depth:
        nonlocal looks
        looks += 1
        raise StoreError("The store is away.")

    shared = Look(look)
    several = [Gauge(f"g{at}", "", shared.told(lambda one: {(): one.dead})) for at in range(4)]
    assert await read_all(several) == []
    assert looks == 1


async def test_who_goes_away_takes_a_look_from_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gauges, "_MOMENT_NS", 1 << 62)
    go = asyncio.Event()

    async def look() -> Depth:
        await go.wait()
        return Depth(waiting=7, sent=0, taken=0, dead=0)

    shared = Look(look)
    several = [Gauge("g", "", shared.told(lambda one: {(): one.waiting}))]
    first, second = (asyncio.create_task(read_all(several)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    go.set()
    assert [one.values for one in await second] == [{(): 7}]


async def test_the_numbers_of_the_queue_name_no_tenant(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, queue=Fleet(work="never"))
    async with Toolgate.open(settings) as gate:
        Held(gate)
        await gate.call("wait", caller=ME, wait_s=0)
        assert not any(ME.tenant in name for name in await numbers(gate))
