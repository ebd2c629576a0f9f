"""The line to the brokers: what is sent over it has arrived, or is said not to have."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from toolgate.brokers.cluster import started

_log = logging.getLogger("toolgate.queue")
# So long a message waits for others that go the same way.
_LINGER_MS = 1
_BATCH_BYTES = 262_144
_MOST_BYTES = 1_048_576
_CLOSE_SECONDS = 5.0
_FIRST_AGAIN = 0.25
_LAST_AGAIN = 5.0


class Fate(Enum):
    """What became of a message. One that is too large is so the next time, too."""

    ARRIVED = auto()
    LOST = auto()
    TOO_LARGE = auto()


class Record(msgspec.Struct, frozen=True):
    """One message: of equal keys, one way."""

    topic: str
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class Line:
    """One producer at a time. One that has failed is let go, and another made when it is time."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._connection = connection
        self._producer: AIOKafkaProducer | None = None
        self._making = asyncio.Lock()
        self._fails = 0
        # Why nothing is sent; nothing where all is well.
        self.problem = ""

    async def ready(self) -> bool:
        """Whether something can be sent; where it cannot, after a moment."""
        if self._producer is not None:
            return True
        async with self._making:
            if self._producer is None:
                await self._make()
        return self._producer is not None

    async def send(self, records: Sequence[Record]) -> Sequence[Fate]:
        """What became of each; one that has arrived is on as many brokers as have to have it."""
        if not await self.ready() or self._producer is None:
            return [Fate.LOST] * len(records)
        producer = self._producer
        answers = [await self._handed(producer, one) for one in records]
        fates = [
            await self._arrived(one, answer) for one, answer in zip(records, answers, strict=True)
        ]
        if Fate.LOST in fates and self.problem and self._producer is producer:
            self._producer = None
            await _ended(producer)
        return fates

    async def close(self) -> None:
        """What was handed over gets a moment."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await _ended(producer)

    async def _make(self) -> None:
        producer = AIOKafkaProducer(
            **self._connection,
            acks="all",
            enable_idempotence=True,
            linger_ms=_LINGER_MS,
            max_batch_size=_BATCH_BYTES,
            max_request_size=_MOST_BYTES,
        )
        try:
            await started(producer)
        except asyncio.CancelledError:
            await _ended(producer)
            raise
        except (KafkaError, OSError, TimeoutError) as error:
            await _ended(producer)
            self._failed(error)
            self._fails += 1
            await asyncio.sleep(min(_FIRST_AGAIN * 2 ** min(self._fails, 10), _LAST_AGAIN))
            return
        if self.problem:
            _log.warning("the brokers are there again")
        self._fails, self.problem, self._producer = 0, "", producer

    async def _handed(
        self, producer: AIOKafkaProducer, one: Record
    ) -> "asyncio.Future[Any] | Fate":
        try:
            return await producer.send(one.topic, one.value, key=one.key, headers=list(one.headers))
        except MessageSizeTooLargeError:
            return Fate.TOO_LARGE
        except (KafkaError, OSError, TimeoutError) as error:
            self._failed(error)
        return Fate.LOST

    async def _arrived(self, one: Record, answer: "asyncio.Future[Any] | Fate") -> Fate:
        if isinstance(answer, Fate):
            return answer
        try:
            await answer
        except (KafkaError, OSError, TimeoutError) as error:
            # A broker refuses whole batches; one that is larger than they are went alone.
            if isinstance(error, MessageSizeTooLargeError) and len(one.value) > _BATCH_BYTES:
                return Fate.TOO_LARGE
            self._failed(error)
            return Fate.LOST
        return Fate.ARRIVED

    def _failed(self, error: BaseException) -> None:
        problem = f"the brokers do not take messages ({type(error).__name__})"
        if problem != self.problem:
            _log.warning("%s; what is queued waits in the store", problem)
        self.problem = problem


async def _ended(producer: AIOKafkaProducer) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await producer.stop()
