"""Queued calls over a real broker: real workers, killed, stopped and brought everything twice."""

import asyncio
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, until
from tests.late import needs
from tests.queue.wire import Wire
from tests.queue.yard import Yard, over
from tests.servers.kafka import Kafka
from toolgate import Toolgate
from toolgate.errors import Overloaded
from toolgate.queue.queue import Stage

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(120)]


@pytest.fixture
def yard(tmp_path: Path, kafka: Kafka) -> Generator[Callable[..., Yard]]:
    opened: list[Yard] = []

    def made(**more: str) -> Yard:
        opened.append(Yard(tmp_path, kafka.address, **more))
        return opened[-1]

    yield made
    for one in opened:
        one.__exit__(None, None, None)


async def queued(gate: Toolgate, tool: str, **args: Any) -> str:
    output = await gate.call(tool, args, caller=ME, wait_s=0)
    assert output.status == "queued", output
    return output.call_id


async def stage(gate: Toolgate, call_id: str) -> Stage:
    found = await gate.queue.calls.find("acme", call_id)
    assert found is not None
    return found.stage


async def test_two_workers_share_the_calls_and_each_is_done_once(
    yard: Callable[..., Yard],
) -> None:
    place = yard(queue="concurrency = 4")
    async with place.gate() as gate, Wire(place) as wire:
        place.worker()
        place.worker()
        held = [await queued(gate, "held", text=f"h{one}") for one in range(20)]
        # Each has its hands full, and its own partitions.
        await until(lambda: len(place.hands()) == 2 and len(place.order()) == 8)
        place.go()
        calls = [gate.call("pay", {"text": f"p{one}"}, caller=ME) for one in range(40)]
        outputs = await asyncio.gather(*calls)
        assert [one.data for one in outputs] == [{"marked": f"p{one}"} for one in range(40)]
        await over(gate, held)
        marks = place.marks()
        assert [marks[f"p{one}"] for one in range(40)] == [1] * 40
        assert [marks[f"h{one}"] for one in range(20)] == [1] * 20
        ids = {*held, *(one.call_id for one in outputs)}
        assert await wire.read(place.results, 60) == ids


async def test_what_is_brought_twice_is_done_once(yard: Callable[..., Yard]) -> None:
    place = yard()
    async with place.gate(work="always") as gate, Wire(place) as wire:
        await wire.listen(place.requests)
        first = await gate.call("pay", {"text": "one"}, caller=ME)
        (record,) = await wire.records(place.requests, 1)
        for _ in range(5):
            await wire.send(place.requests, record.value, dict(record.headers))
        second = await gate.call("pay", {"text": "two"}, caller=ME)
        assert (first.ok, second.ok) == (True, True)
        assert (await gate.queue.calls.depth()).dead == 0
        assert place.marks() == {"one": 1, "two": 1}


@pytest.mark.parametrize("arrived", [False, True], ids=["before it arrived", "after it did"])
async def test_a_node_that_is_gone_while_it_sends_leaves_the_call_to_be_sent_again(
    yard: Callable[..., Yard], monkeypatch: pytest.MonkeyPatch, *, arrived: bool
) -> None:
    """On record as sent, and nobody is left who knows whether it was."""
    from toolgate.brokers import line  # noqa: PLC0415  its client is an extra

    place = yard()
    began, send = asyncio.Event(), line.Line.send

    async def gone(self: Any, records: Any) -> Any:
        if arrived:
            await send(self, records)
        began.set()
        await asyncio.Event().wait()

    async with Wire(place) as wire:
        with monkeypatch.context() as patched:
            patched.setattr(line.Line, "send", gone)
            async with place.gate() as gate:
                ids = [await queued(gate, "pay", text=f"p{one}") for one in range(3)]
                await began.wait()
        async with place.gate(work="always") as gate:
            assert {await stage(gate, one) for one in ids} <= {Stage.WAITING, Stage.SENT}
            await over(gate, ids)
            # All that came twice has been looked at once something behind it has run.
            for _ in range(8):
                assert (await gate.call("look", {"text": "last"}, caller=ME)).ok
        assert {f"p{one}": place.marks()[f"p{one}"] for one in range(3)} == {
            f"p{one}": 1 for one in range(3)
        }
        assert len(await wire.records(place.requests, 3 + arrived)) >= 3 + arrived


async def test_a_worker_that_is_killed_leaves_what_it_held_to_others_each_once(
    yard: Callable[..., Yard],
) -> None:
    # One tool has half of a provider's places.
    place = yard(queue="concurrency = 50", more="[limits]\nconcurrency = 128")
    async with place.gate() as gate:
        first = place.worker()
        ids = [await queued(gate, "held", text=f"h{one}") for one in range(60)]
        await until(lambda: sum(one.startswith("began-") for one in place.order()) == 50)
        first.kill()
        first.wait()
        place.worker()
        place.go()
        await over(gate, ids)
        marks = place.marks()
        assert {f"h{one}": marks[f"h{one}"] for one in range(60)} == {
            f"h{one}": 1 for one in range(60)
        }


async def test_a_worker_that_is_told_to_end_claims_nothing_more(
    yard: Callable[..., Yard],
) -> None:
    place = yard(queue="drain = 30")
    async with place.gate() as gate:
        worker = place.worker()
        first = await queued(gate, "held", text="first")
        await until(lambda: "began-first" in place.marks())
        worker.send_signal(signal.SIGTERM)
        # It has heard that once nothing in its group takes what comes.
        second = await queued(gate, "look", text="second")
        await asyncio.sleep(2)
        assert worker.poll() is None
        place.go()
        assert await asyncio.to_thread(worker.wait, 30) == 0
        assert await stage(gate, first) is Stage.DONE
        assert place.marks() == {"began-first": 1, "first": 1}
        assert await stage(gate, second) in {Stage.WAITING, Stage.SENT}
        place.worker()
        await over(gate, [second])


async def test_a_broker_that_is_away_lets_calls_wait_so_many_and_in_their_order(
    yard: Callable[..., Yard], kafka: Kafka
) -> None:
    # What is put while the others are counted may be counted twice, or not at all.
    place = yard(queue="waiting = 44\ntenant_waiting = 44")
    async with place.gate(work="always") as gate:
        assert (await gate.call("look", {"text": "before"}, caller=ME)).ok
        kafka.stop()
        try:
            ids = [
                await queued(gate, "post", text=f"{one}", account=f"a{one % 2}")
                for one in range(40)
            ]
            more = [queued(gate, "look", text="more") for _ in range(12)]
            found = await asyncio.gather(*more, return_exceptions=True)
            full = [one for one in found if isinstance(one, Overloaded)]
            assert len(full) >= 3, found
            assert "So many calls are queued" in full[0].message
        finally:
            kafka.start()
        await over(gate, ids)
        done = [int(one) for one in place.order() if one.isdigit()]
        assert [one for one in done if one % 2] == list(range(1, 40, 2))
        assert [one for one in done if not one % 2] == list(range(0, 40, 2))


async def test_a_handler_that_takes_longer_than_the_poll_interval_is_not_taken_away(
    yard: Callable[..., Yard], monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.brokers import arrivals  # noqa: PLC0415  its client is an extra

    monkeypatch.setattr(arrivals, "POLL_INTERVAL_MS", 1_500)
    place = yard(queue="concurrency = 1")
    async with place.gate(work="always") as gate:
        assert (await gate.call("look", {"text": "before"}, caller=ME)).ok
        lost: list[Any] = []
        revoked = arrivals.KafkaArrivals.on_partitions_revoked

        async def noted(self: Any, places: Any) -> None:
            lost.append(places)
            await revoked(self, places)

        monkeypatch.setattr(arrivals.KafkaArrivals, "on_partitions_revoked", noted)
        ids = [await queued(gate, "held", text="long")]
        ids += [await queued(gate, "look", text=f"{one}") for one in range(100)]
        await until(lambda: "began-long" in place.marks())
        # Twice the interval, in which nothing is taken.
        await asyncio.sleep(3.5)
        assert not lost
        place.go()
        await over(gate, ids)
        assert not lost
        assert set(place.marks().values()) == {1}
