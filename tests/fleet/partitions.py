"""How far a group of workers has come in each partition, and for how long one stood still."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from tests.queue.yard import Yard

_EVERY = 0.5
# Where a description of a group names them.
_MEMBERS = 5


class Partitions:
    """`longest`: seconds for which a partition with something in it did not move.

    `members`: the most workers that shared them.
    """

    def __init__(self, yard: Yard) -> None:
        fleet = yard.settings().queue
        where = ",".join(fleet.brokers)
        self._group = fleet.group
        self._places = [
            TopicPartition(fleet.topics.requests, number)
            for number in range(fleet.topics.partitions)
        ]
        self._admin = AIOKafkaAdminClient(bootstrap_servers=where)
        self._consumer = AIOKafkaConsumer(bootstrap_servers=where)
        # Where each of them stood, and since when.
        self._stood: dict[Any, tuple[int, float]] = {}
        self.longest = 0.0
        self.members = 0

    async def __aenter__(self) -> Self:
        await self._admin.start()
        await self._consumer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self._consumer.stop()
        await self._admin.close()

    async def watch(self) -> int:
        """Until it is cancelled; how often it looked."""
        looks = 0
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                # A group that nobody has joined has nobody to ask.
                with contextlib.suppress(KafkaError):
                    await self._look()
                    looks += 1
                await asyncio.sleep(_EVERY)
        return looks

    async def _look(self) -> None:
        committed = await self._admin.list_consumer_group_offsets(self._group)
        ends = await self._consumer.end_offsets(self._places)
        described: Any = await self._admin.describe_consumer_groups([self._group])
        self.members = max(self.members, len(described[0].groups[0][_MEMBERS]))
        now = time.monotonic()
        for place in self._places:
            found = committed.get(place)
            at = 0 if found is None else found.offset
            before, since = self._stood.get(place, (-1, now))
            if at != before or at >= ends[place]:
                self._stood[place] = (at, now)
            else:
                self.longest = max(self.longest, now - since)
