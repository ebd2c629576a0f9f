"""Tells how calls ended: on the topic of results, and of those that are dead on theirs."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence

import msgspec

from toolgate.brokers.line import Line, Record
from toolgate.brokers.seal import Seal
from toolgate.errors import InvalidRequest, StoreError
from toolgate.queue.message import VERSION, Letter, Result, read_output, written
from toolgate.queue.queue import Stage
from toolgate.queue.shipping import Shipping, Untold
from toolgate.settings.fleet import Topics

_log = logging.getLogger("toolgate.queue")
_AT_ONCE = 500
# What is not told from memory is told from the store, later.
_MOST_WAITING = 10_000
_MS = 1_000_000
# A letter goes in base64, and a broker takes a megabyte.
_MOST_SHOWN = 500_000


class Teller:
    """One of each process. What it could not tell stays in the store as not told."""

    def __init__(self, shipping: Shipping, line: Line, topics: Topics, seal: Seal) -> None:
        self._shipping = shipping
        self._line = line
        self._topics = topics
        self._seal = seal
        self._waiting: list[tuple[str, list[Record]]] = []
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def tell(self, result: Result, letter: Letter | None) -> None:
        """Nobody waits until it is told."""
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append((result.id, self._records(result, letter)))
            self._idle.clear()
            self._news.set()

    async def later(self, ended: Sequence[Untold]) -> None:
        """What whoever ended it did not come to tell."""
        await self._send([(one.call_id, self._late(one)) for one in ended])

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                batch, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                try:
                    await self._send(batch)
                except StoreError as error:
                    _log.warning("results are told twice: %s", error)
                except Exception as error:  # noqa: BLE001  the store still has what was not told
                    _log.error("results are told later: %s", type(error).__name__)
            self._idle.set()

    async def finish(self, seconds: float) -> None:
        """What has ended here is told, if that takes no longer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def _send(self, batch: Sequence[tuple[str, list[Record]]]) -> None:
        each = [(call_id, one) for call_id, records in batch for one in records]
        arrived = await self._line.send([one for _, one in each])
        lost = {call_id for (call_id, _), there in zip(each, arrived, strict=True) if not there}
        told = [call_id for call_id, _ in batch if call_id not in lost]
        if told:
            await self._shipping.told(told)

    def _records(self, result: Result, letter: Letter | None) -> list[Record]:
        value, key = _bounded(result), result.id.encode()
        headers = (
            ("toolgate-version", str(VERSION).encode()),
            ("toolgate-tenant", result.tenant.encode()),
            *self._seal.headers(value),
        )
        found = [Record(self._topics.results, key, value, headers)]
        return found if letter is None else [*found, self._letter(letter)]

    def _letter(self, letter: Letter) -> Record:
        shown = msgspec.structs.replace(letter, message=letter.message[:_MOST_SHOWN])
        headers = (("toolgate-version", str(VERSION).encode()),)
        return Record(self._topics.dead, letter.id.encode(), written(shown), headers)

    def _late(self, one: Untold) -> list[Record]:
        letter = None
        if one.stage is Stage.DEAD:
            letter = Letter(
                version=VERSION,
                id=one.call_id,
                tool=one.tool,
                tenant=one.tenant,
                why=one.why,
                attempts=one.attempts,
                died_ms=one.ended_ns // _MS,
                message=one.message,
            )
        if letter is not None and not one.output:
            # It was no call: nobody waits for how it ended.
            return [self._letter(letter)]
        result = Result(
            version=VERSION,
            id=one.call_id,
            tool=one.tool,
            tenant=one.tenant,
            output=read_output(one.output),
            ended_ms=one.ended_ns // _MS,
        )
        return self._records(result, letter)


def _bounded(result: Result) -> bytes:
    try:
        return written(result)
    except InvalidRequest:
        bare = msgspec.structs.replace(result.output, data=None, attachments=())
        return written(msgspec.structs.replace(result, output=bare, cut=True))
