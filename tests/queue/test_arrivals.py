"""What a worker has fetched when partitions change hands: claimed, in its order, never dropped."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from tests.house import until
from tests.late import needs
from tests.queue.stand import LONG, item, names
from toolgate import clock
from toolgate.errors import StoreError
from toolgate.net.signature import signature
from toolgate.queue.queue import Taken
from toolgate.settings.fleet import Fleet
from toolgate.testing.queue import MemoryQueue
from toolgate.testing.shipping import MemoryShipping

needs("aiokafka", "an extra")
pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(60)]
SECRET = b"s3cret-of-the-crm"


class Consumer:
    """A member of a group as far as it is asked: it brings what it is given."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.here = {place}
        self.given: asyncio.Queue[list[Any]] = asyncio.Queue()
        self.committed: list[int] = []
        # What it is told to be done with, as it stands in that moment.
        self.looks: Callable[[int], object] = lambda _at: None

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
        for at in due.values():
            self.looks(at)
            self.committed.append(at)


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
    return f"sent_{offset:08}"


def _record(offset: int) -> Any:
    value = orjson.dumps({"id": _name(offset)})
    return SimpleNamespace(
        topic="requests", partition=0, offset=offset, key=b"", value=value, headers=()
    )


def opened(patch: pytest.MonkeyPatch, consumer: Consumer, queue: MemoryQueue, **more: Any) -> Any:
    """Arrivals over it, which commit all the time."""
    from toolgate.brokers import arrivals as module  # noqa: PLC0415  an extra
    from toolgate.brokers.seal import Seal, Signer  # noqa: PLC0415  as above

    def made(**_: Any) -> Consumer:
        return consumer

    patch.setattr(module, "AIOKafkaConsumer", made)
    patch.setattr(module, "_COMMIT_NS", 0)
    seal = Seal(b"s" * 32, {"crm": Signer(SECRET, frozenset("*"))}, lasts=60)
    return module.KafkaArrivals({}, Fleet(), queue, MemoryShipping(queue), seal, **more)


def place() -> Any:
    from aiokafka import TopicPartition  # noqa: PLC0415  an extra

    return TopicPartition("requests", 0)


async def test_what_could_not_be_claimed_while_its_partition_changed_hands_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer, queue = Consumer(place()), Away()
    for offset in range(10, 16):
        await queue.put(item(_name(offset)))
    arrivals = opened(monkeypatch, consumer, queue)
    early: list[str] = []

    def looks(at: int) -> None:
        early.extend(_name(one) for one in range(10, at) if queue.rows[_name(one)].fence == 0)

    consumer.looks = looks

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
    assert early == [], "it was said to be done with, and nobody had claimed it"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _hands_change(consumer: Consumer, arrivals: Any, queue: MemoryQueue) -> None:
    """More often than the worker comes to the end of what it has fetched."""
    for offset in range(12):
        await queue.put(item(_name(offset)))
    running = asyncio.create_task(arrivals.run())
    await until(lambda: not arrivals.problem)
    await arrivals.on_partitions_assigned({consumer.place})
    held: list[str] = []
    for _ in range(3):
        at = (consumer.committed or [0])[-1]
        consumer.given.put_nowait([_record(offset) for offset in range(at, 12)])
        await until(consumer.given.empty)
        held += names(await arrivals.take(2, LONG))
        await arrivals.on_partitions_revoked({consumer.place})
        await arrivals.on_partitions_assigned({consumer.place})
    assert held == [_name(offset) for offset in range(6)]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_is_here_when_its_partition_comes_back_is_not_worked_off_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer, queue = Consumer(place()), MemoryQueue()
    await _hands_change(consumer, opened(monkeypatch, consumer, queue), queue)
    assert consumer.committed[-1] == 6


async def test_if_it_were_nothing_would_be_said_to_be_done_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from toolgate.brokers.backlog import Backlog  # noqa: PLC0415  an extra

    def twice(backlog: Any, records: Sequence[Any]) -> None:
        backlog._whole.extend(records)

    monkeypatch.setattr(Backlog, "add", twice)
    consumer, queue = Consumer(place()), MemoryQueue()
    await _hands_change(consumer, opened(monkeypatch, consumer, queue), queue)
    # Only of the first time, when there was no second copy yet.
    assert consumer.committed[-1] == 2


async def test_what_others_have_by_now_is_neither_kept_nor_said_to_be_done_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer, queue = Consumer(place()), MemoryQueue()
    arrivals = opened(monkeypatch, consumer, queue)
    for offset in range(30):
        await queue.put(item(_name(offset)))
    running = asyncio.create_task(arrivals.run())
    await until(lambda: not arrivals.problem)
    await arrivals.on_partitions_assigned({consumer.place})
    consumer.given.put_nowait([_record(offset) for offset in range(10)])
    await until(consumer.given.empty)
    await arrivals.on_partitions_revoked({consumer.place})
    # Until somebody has it, what was fetched is claimed here.
    assert len(await arrivals.take(3, LONG)) == 3
    consumer.here.clear()
    await arrivals.on_partitions_assigned(set())
    assert not await arrivals.take(30, LONG)
    # They have come to the twentieth, and it is ours again.
    consumer.committed.append(20)
    consumer.here.add(consumer.place)
    await arrivals.on_partitions_assigned({consumer.place})
    consumer.given.put_nowait([_record(offset) for offset in range(20, 30)])
    await until(consumer.given.empty)
    assert len(await arrivals.take(30, LONG)) == 10
    await until(lambda: consumer.committed[-1] == 30)
    assert consumer.committed == sorted(consumer.committed)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _signed(offset: int, tenant: str) -> Any:
    asked = {
        "version": 1,
        "id": _name(offset),
        "tool": "pay",
        "args": {},
        "caller": {"tenant": tenant, "agent": "billing"},
    }
    record, at = _record(offset), str(clock.unix_ns() // 10**9)
    record.value = orjson.dumps(asked)
    signed = signature(SECRET, at, record.value).encode()
    record.headers = (
        ("toolgate-producer", b"crm"),
        ("toolgate-timestamp", at.encode()),
        ("toolgate-signature", signed),
    )
    return record


async def test_what_another_system_sent_is_said_to_be_done_with_once_it_has_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No worker has a place, and one tenant has no room in the queue: its calls stay behind, and
    nothing that is committed speaks for them.
    """
    consumer, queue = Consumer(place()), MemoryQueue()
    room = {"acme": 5}

    @contextmanager
    def places(tenant: str) -> Generator[bool]:
        room[tenant] = room.get(tenant, 1_000) - 1
        yield room[tenant] >= 0

    arrivals = opened(monkeypatch, consumer, queue, place=places)
    early: list[str] = []

    def looks(at: int) -> None:
        early.extend(_name(one) for one in range(at) if _name(one) not in queue.rows)

    consumer.looks = looks
    running = asyncio.create_task(arrivals.run())
    sent = [_signed(offset, ("acme", "globex")[offset % 2]) for offset in range(64)]
    consumer.given.put_nowait(sent)
    await until(lambda: len(queue.rows) == 37 and bool(consumer.committed))
    assert consumer.committed[-1] == 10, "the first one of those that stay behind"
    taken = await arrivals.take(100, LONG)
    assert len(taken) == 27
    await until(lambda: consumer.committed[-1] == 64)
    assert early == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
