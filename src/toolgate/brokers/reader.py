"""Reads partitions. What no client can read is passed by, and told of like everything else."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import UnsupportedCodecError

from toolgate import clock

# A header whose name is no UTF-8, or a compression that this process has no code for.
_UNREADABLE = (UnicodeDecodeError, UnsupportedCodecError)
# After such a message so long one at a time: whoever writes one may write more.
_SINGLY_NS = 1_000_000_000
_MOMENT = 0.02


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A message of which nothing is known but where it lies."""

    topic: str
    partition: int
    offset: int
    why: str
    key: None = None
    value: None = None
    headers: tuple[()] = ()


class Reader:
    """Of one consumer. `places` is where each partition is read on, as far as that is known."""

    def __init__(self, consumer: AIOKafkaConsumer, places: dict[Any, int]) -> None:
        self._consumer = consumer
        self._places = places
        self._singly_until_ns = 0
        self._forgotten = 0

    async def read(self, *, timeout_ms: int, most: int | None = None) -> list[Any]:
        """Records, and what is `Unread` among them, in the order of each partition."""
        if clock.monotonic_ns() < self._singly_until_ns:
            return await self._singly()
        forgotten = self._forgotten
        try:
            fetched = await self._consumer.getmany(timeout_ms=timeout_ms, max_records=most)
        except _UNREADABLE:
            # What it had of other partitions is lost with it.
            await self._go_back()
            self._singly_until_ns = clock.monotonic_ns() + _SINGLY_NS
            return []
        if forgotten == self._forgotten:
            for place, records in fetched.items():
                self._places[place] = records[-1].offset + 1
        return [one for records in fetched.values() for one in records]

    def forget(self, places: Iterable[Any]) -> None:
        """Others read them from now on, or they are read from where they were committed."""
        self._forgotten += 1
        for place in places:
            self._places.pop(place, None)

    async def _go_back(self) -> None:
        for place in self._consumer.assignment():
            at = self._places.get(place)
            if at is None:
                at = await self._consumer.committed(place)
            if at is None:
                await self._consumer.seek_to_beginning(place)
            else:
                self._consumer.seek(place, at)

    async def _singly(self) -> list[Any]:
        """At most one of each partition: so it is known which one cannot be read."""
        found: list[Any] = []
        for place in self._consumer.assignment():
            forgotten = self._forgotten
            try:
                records = (await self._consumer.getmany(place, max_records=1)).get(place, [])
            except _UNREADABLE as error:
                records = [await self._pass_by(place, error)]
            if records and forgotten == self._forgotten:
                self._places[place] = records[-1].offset + 1
            found += records
        if not found:
            await asyncio.sleep(_MOMENT)
        return found

    async def _pass_by(self, place: Any, error: Exception) -> Unread:
        """A client reads a batch from its front: what one writer sent in one batch behind this
        message is met, and passed by, in the same way.
        """
        at = await self._consumer.position(place)
        self._consumer.seek(place, at + 1)
        self._singly_until_ns = clock.monotonic_ns() + _SINGLY_NS
        why = f"the client of the brokers cannot read it ({type(error).__name__})"
        return Unread(topic=place.topic, partition=place.partition, offset=at, why=why)
