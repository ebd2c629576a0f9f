"""Where partitions are read on, once a client has met a message that it cannot read."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.late import needs

needs("aiokafka", "an extra")
pytestmark = pytest.mark.req("P6")


class Place(NamedTuple):
    """A partition, by the names that a client's have."""

    topic: str
    partition: int = 0


LEFT, RIGHT = Place("left"), Place("right")


class Consumer:
    """Two partitions as a client reads them: what it had of one is lost where it fails over the
    other.
    """

    def __init__(self, broken: Sequence[int]) -> None:
        self.broken = broken
        self.at = {LEFT: 0, RIGHT: 0}
        self.known: Mapping[Place, int | None] = {LEFT: None, RIGHT: None}
        self.many = 4
        # What happens while somebody waits for messages.
        self.meanwhile: list[Any] = []

    def assignment(self) -> set[Place]:
        return set(self.at)

    async def getmany(
        self, *places: Place, timeout_ms: int = 0, max_records: int | None = None
    ) -> Mapping[Place, list[Any]]:
        del timeout_ms
        found: dict[Place, list[Any]] = {}
        for place in places or (LEFT, RIGHT):
            end = min(self.at[place] + (max_records or self.many), self.many)
            records = [
                SimpleNamespace(topic=place.topic, partition=0, offset=offset)
                for offset in range(self.at[place], end)
            ]
            if place == RIGHT and any(one.offset in self.broken for one in records):
                raise UnicodeDecodeError("utf-8", b"", 0, 1, "no name")
            if records:
                found[place], self.at[place] = records, end
        for work in self.meanwhile:
            work()
        return found

    async def position(self, place: Place) -> int:
        return self.at[place]

    async def committed(self, place: Place) -> int | None:
        return self.known[place]

    def seek(self, place: Place, offset: int) -> None:
        self.at[place] = offset

    async def seek_to_beginning(self, place: Place) -> None:
        self.at[place] = 0


def reader(consumer: Consumer, places: dict[Any, int]) -> Any:
    from toolgate.brokers.reader import Reader  # noqa: PLC0415  its client is an extra

    made: Any = consumer
    return Reader(made, places)


async def all_of(reading: Any) -> dict[Place, list[int]]:
    """Which messages of each partition are read until there are no more, in their order."""
    found: dict[Place, list[int]] = {LEFT: [], RIGHT: []}
    empty = 0
    while empty < 3:
        some = await reading.read(timeout_ms=0)
        empty = 0 if some else empty + 1
        for one in some:
            found[Place(one.topic)].append(one.offset)
    return found


@pytest.mark.parametrize("broken", [[0], [2], [3], [0, 1, 2, 3], [1, 3]])
async def test_all_that_can_be_read_is_read_once_beside_what_cannot(broken: list[int]) -> None:
    assert await all_of(reader(Consumer(broken), {})) == {
        LEFT: [0, 1, 2, 3],
        RIGHT: [0, 1, 2, 3],
    }


async def test_where_nothing_was_read_yet_it_goes_on_from_what_was_committed() -> None:
    consumer = Consumer([2])
    consumer.known, consumer.at = {LEFT: 3, RIGHT: 1}, {LEFT: 3, RIGHT: 1}
    assert await all_of(reader(consumer, {})) == {LEFT: [3], RIGHT: [1, 2, 3]}


async def test_what_was_read_before_others_had_a_partition_says_nothing_about_it() -> None:
    consumer = Consumer([3])
    reading = reader(consumer, {})
    consumer.many = 3
    await reading.read(timeout_ms=0)
    # It was given back before what was read of it was done: others had it, and left it at 1.
    reading.forget([LEFT, RIGHT])
    consumer.many, consumer.known = 4, {LEFT: 1, RIGHT: 1}
    consumer.at = {LEFT: 1, RIGHT: 1}
    assert await all_of(reading) == {LEFT: [1, 2, 3], RIGHT: [1, 2, 3]}


async def test_what_is_brought_while_partitions_change_hands_says_nothing_about_them() -> None:
    consumer = Consumer([3])
    reading = reader(consumer, {})
    consumer.many = 3
    consumer.meanwhile = [lambda: reading.forget([LEFT, RIGHT])]
    await reading.read(timeout_ms=0)
    consumer.meanwhile = []
    consumer.many, consumer.known = 4, {LEFT: 1, RIGHT: 1}
    consumer.at = {LEFT: 1, RIGHT: 1}
    assert await all_of(reading) == {LEFT: [1, 2, 3], RIGHT: [1, 2, 3]}
