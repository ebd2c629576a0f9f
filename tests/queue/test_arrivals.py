"""What a worker has fetched when partitions change hands: claimed, in its order, never dropped."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from tests.house import until
from tests.late import needs
from tests.queue.stand import LONG, item, names
from toolgate.errors import StoreError
from toolgate.queue.queue import Taken
from toolgate.settings.fleet import Fleet
from toolgate.testing.queue import MemoryQueue
from toolgate.testing.shipping import MemoryShipping

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(60)]


class Consumer:
    """A member of a group as far as it is asked: it brings what it is given."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.here = {place}
        self.given: asyncio.Queue[list[Any]] = asyncio.Queue()
        self.committed: list[int] = []

    def subscribe(self, topics: Any, listener: Any) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def pause(self, *_: Any) -> None: ...
    def resume(self, *_: Any) -> None: ...

    def paused(self) -> set[Any]:
        return set()

    def assignment(self) -> set[Any]:
        return set(self.here)

    async def getmany(self, *, timeout_ms: int, max_records: int | None) -> Mapping[Any, list[Any]]:
        del timeout_ms, max_records
        try:
            async with asyncio.timeout(0.01):
                return {self.place: await self.given.get()}
        except TimeoutError:
            return {}

    async def commit(self, due: Mapping[Any, int]) -> None:
        self.committed += due.values()


class Away(MemoryQueue):
    """A store that goes away while it is asked for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def claim(self, call_ids: Sequence[str], lease: float) -> Sequence[Taken]:
        if not self.asked.is_set():
            self.asked.set()
            await self.go.wait()
            raise StoreError("The store is away.")
        return await super().claim(call_ids, lease)


def _name(offset: int) -> str:
    return f"call_{offset:08}"


def _record(offset: int) -> Any:
    value = orjson.dumps({"id": _name(offset)})
    return SimpleNamespace(
        topic="requests", partition=0, offset=offset, key=b"", value=value, headers=()
    )


async def test_what_could_not_be_claimed_while_its_partition_changed_hands_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from aiokafka import TopicPartition  # noqa: PLC0415  an extra

    from toolgate.brokers import arrivals as module  # noqa: PLC0415  as above
    from toolgate.brokers.seal import Seal  # noqa: PLC0415  as above

    consumer, queue = Consumer(TopicPartition("requests", 0)), Away()

    def made(**_: Any) -> Consumer:
        return consumer

    monkeypatch.setattr(module, "AIOKafkaConsumer", made)
    monkeypatch.setattr(module, "_COMMIT_NS", 0)
    for offset in range(10, 16):
        await queue.put(item(_name(offset)))
    shipping, seal = MemoryShipping(queue), Seal(b"s" * 32, {}, lasts=60)
    arrivals = module.KafkaArrivals({}, Fleet(), queue, shipping, seal)

    async def some() -> list[str]:
        while not (found := await arrivals.take(3, LONG)):
            pass
        return names(found)

    running = asyncio.create_task(arrivals.run())
    consumer.given.put_nowait([_record(offset) for offset in range(10, 13)])
    taking = asyncio.create_task(some())
    await queue.asked.wait()
    consumer.given.put_nowait([_record(offset) for offset in range(13, 16)])
    await until(consumer.given.empty)
    # They are another's for a moment, in which the store does not answer, and then ours again.
    await arrivals.on_partitions_revoked({consumer.place})
    consumer.here.clear()
    queue.go.set()
    with pytest.raises(StoreError):
        await taking
    consumer.here.add(consumer.place)
    assert await some() == [_name(offset) for offset in range(10, 13)]
    assert await some() == [_name(offset) for offset in range(13, 16)]
    await until(lambda: consumer.committed[-1:] == [16])
    assert consumer.committed == sorted(consumer.committed)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
