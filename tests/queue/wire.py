"""Another system at the same broker: it writes to topics and reads them."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from tests.queue.yard import Yard
from toolgate.net.signature import signature

LARGE = 8_000_000
_UNNAMED = """
import asyncio, sys
from aiokafka import AIOKafkaProducer

class Name(str):
    def encode(self, *_):
        return bytes([255, 254])

async def main(address, topic, partition):
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait(
            topic, b"{}", headers=[(Name("x"), b"1")], partition=int(partition)
        )

asyncio.run(main(*sys.argv[1:]))
"""


class Wire:
    def __init__(self, yard: Yard) -> None:
        address = yard.settings().queue.brokers
        self._address = ",".join(address)
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._address, max_request_size=LARGE, compression_type=None
        )
        self._consumers: dict[str, AIOKafkaConsumer] = {}

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for one in self._consumers.values():
            await one.stop()
        await self._producer.stop()

    async def make(self, topic: str, most_bytes: int = LARGE) -> None:
        """Somebody has made it before the house: the broker takes messages of so many bytes."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        wanted = {"max.message.bytes": str(most_bytes)}
        await admin.create_topics([NewTopic(topic, 4, 1, topic_configs=wanted)])
        await admin.close()

    async def unmake(self, topic: str) -> None:
        """It is gone, with all that was in it."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        await admin.delete_topics([topic])
        async with asyncio.timeout(30):
            while topic in await admin.list_topics():  # noqa: ASYNC110  the broker tells nobody
                await asyncio.sleep(0.1)
        await admin.close()

    async def listen(self, topic: str) -> AIOKafkaConsumer:
        """From its beginning, whenever it was that somebody wrote."""
        if topic not in self._consumers:
            consumer = AIOKafkaConsumer(
                topic, bootstrap_servers=self._address, auto_offset_reset="earliest"
            )
            await consumer.start()
            self._consumers[topic] = consumer
        return self._consumers[topic]

    async def pass_over(self, topic: str, group: str) -> None:
        """As a group whose members are gone would have it that had read all of it."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._address, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        places = [TopicPartition(topic, number) for number in range(4)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        async with asyncio.timeout(60):
            while True:
                # Until the broker has seen that nobody of it is left.
                with contextlib.suppress(KafkaError):
                    await consumer.commit(ends)
                    break
                await asyncio.sleep(0.2)
        await consumer.stop()

    async def records(self, topic: str, many: int) -> list[Any]:
        consumer, found = await self.listen(topic), []
        async with asyncio.timeout(30):
            while len(found) < many:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found.extend(records)
        return found

    async def read(self, topic: str, many: int) -> set[str]:
        """The ids of so many different messages."""
        seen: set[str] = set()
        while len(seen) < many:
            seen |= {orjson.loads(one.value)["id"] for one in await self.records(topic, 1)}
        return seen

    async def send(
        self,
        topic: str,
        value: bytes,
        headers: Mapping[str, bytes | None] | None = None,
        partition: int | None = None,
    ) -> None:
        given: Any = list((headers or {}).items())
        await self._producer.send_and_wait(topic, value, headers=given, partition=partition)

    async def send_unnamed(self, topic: str, partition: int) -> None:
        """A message with a header whose name is no UTF-8: clients in other languages can."""
        words = ("-c", _UNNAMED, self._address, topic, str(partition))
        environ = {**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"}
        sent = await asyncio.create_subprocess_exec(sys.executable, *words, env=environ)
        assert await sent.wait() == 0

    async def sign(self, topic: str, message: Any, secret: str, *, by: str, **more: Any) -> None:
        """As a producer does that the settings name."""
        value = message if isinstance(message, bytes) else orjson.dumps(message)
        place = more.get("partition")
        at = str(more.get("at", int(time.time())))
        headers = {
            "toolgate-producer": by.encode(),
            "toolgate-timestamp": at.encode(),
            "toolgate-signature": signature(secret.encode(), at, value).encode(),
        }
        key = orjson.loads(value)["id"].encode() if more.get("key") else None
        given = [*headers.items(), *more.get("headers", ())]
        await self._producer.send_and_wait(topic, value, key=key, headers=given, partition=place)
