"""Ends of calls, heard by every node: whoever waits here is given theirs."""

# aiokafka carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from aiokafka import AIOKafkaConsumer

from toolgate.brokers.cluster import started
from toolgate.brokers.reader import Reader
from toolgate.brokers.seal import Seal, Signer, UnsignedError
from toolgate.executor.queued import Answers
from toolgate.queue.message import MOST_BYTES, Result, UnreadableError, read_result

_log = logging.getLogger("toolgate.queue")
_POLL_MS = 1_000
_AGAIN = 1.0
_CLOSE_SECONDS = 5.0

# Whether a system may answer this call, which it was handed over to.
MayAnswer = Callable[[str, Signer], bool]


class Results:
    """Reads every partition from its end, in no group. What it misses the store still has."""

    def __init__(
        self,
        connection: Mapping[str, Any],
        topic: str,
        seal: Seal,
        answers: Answers,
        *,
        outside: Answers,
        may_answer: MayAnswer,
        overdue: MutableMapping[str, Any],
        heard: Callable[[], object],
    ) -> None:
        """`outside`: whoever waits for what another system runs; `overdue`: the calls that somebody
        has waited for in vain. `heard`: that calls have ended.
        """
        self._connection = connection
        self._topic = topic
        self._seal = seal
        self._answers = answers
        self._outside = outside
        self._may_answer = may_answer
        self._overdue = overdue
        self._heard = heard
        self._next: dict[Any, int] = {}
        self._listens = asyncio.Event()
        # Why nothing is heard; nothing where all is well.
        self.problem = "it has not begun"

    async def ready(self) -> None:
        """Whatever is told from now on is heard."""
        await self._listens.wait()

    async def run(self) -> None:
        """Until it is cancelled. A broker that is away is asked again."""
        while True:
            consumer = AIOKafkaConsumer(
                self._topic,
                **self._connection,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="latest",
            )
            try:
                await started(consumer)
                await self._begin(consumer)
                self.problem = ""
                self._listens.set()
                await self._listen(consumer)
            except Exception as error:  # noqa: BLE001  whoever listens must not end before the rest
                self.problem = f"results are not heard ({type(error).__name__})"
                _log.warning("%s; the store is asked for them", self.problem)
            finally:
                self._listens.clear()
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await consumer.stop()
            await asyncio.sleep(_AGAIN)

    async def _begin(self, consumer: AIOKafkaConsumer) -> None:
        """Where it was, or at the end."""
        for place in consumer.assignment():
            if place in self._next:
                consumer.seek(place, self._next[place])
            else:
                self._next[place] = await consumer.position(place)

    async def _listen(self, consumer: AIOKafkaConsumer) -> None:
        reader = Reader(consumer, self._next)
        while True:
            found = await reader.read(timeout_ms=_POLL_MS)
            for one in found:
                try:
                    self._hear(one)
                except Exception as error:  # noqa: BLE001  one message's trouble is not that of the others
                    _log.warning("a result cannot be read: %s", type(error).__name__)
            if found:
                self._heard()

    def _hear(self, one: Any) -> None:
        """Anybody may be able to write to a topic: only what is signed is believed."""
        name = (one.key or b"").decode(errors="replace")
        answers, outside = self._answers, self._outside
        is_outside = outside.awaits(name) or name in self._overdue
        if not one.value or not (answers.awaits(name) or is_outside):
            return
        if answers.awaits(name) and self._seal.is_ours(one.headers, one.value):
            result = _read(one.value, name)
            if result is not None and not result.cut:
                answers.give(name, result.output)
            return
        if not is_outside or len(one.value) > MOST_BYTES:
            return
        try:
            signer = self._seal.signer(one.headers, one.value)
        except UnsignedError:
            return
        result = _read(one.value, name)
        if result is None or not self._may_answer(name, signer):
            return
        if self._overdue.pop(name, None) is not None:
            _log.warning(
                "call %s is answered (%s) after its time was over: nobody waits for it any more, "
                "and what is on record stays",
                name,
                result.output.status,
            )
        else:
            outside.give(name, result.output)


def _read(value: bytes, name: str) -> Result | None:
    try:
        result = read_result(value)
    except UnreadableError as error:
        _log.warning("a result cannot be read: %s", error)
        return None
    return result if result.id == name else None
