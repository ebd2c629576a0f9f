"""Tells how calls ended: on the topic of results, and of those that are dead on theirs."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from toolgate.brokers.line import Fate, Line, Record
from toolgate.brokers.seal import Seal
from toolgate.call import Output
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
# Of an end that is too large for a message, so much is said of why.
_MOST_SAID = 2_000
_MOST_DETAILS = 10_000


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
            records = _made(result.id, partial(self._records, result, letter))
            self._waiting.append((result.id, records))
            self._idle.clear()
            self._news.set()

    async def later(self, ended: Sequence[Untold]) -> None:
        """What whoever ended it did not come to tell."""
        await self._send(
            [(one.call_id, _made(one.call_id, partial(self._late, one))) for one in ended]
        )

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
        fates = await self._line.send([one for _, one in each])
        lost: set[str] = set()
        for (call_id, _), fate in zip(each, fates, strict=True):
            if fate is Fate.LOST:
                lost.add(call_id)
            elif fate is Fate.TOO_LARGE:
                _log.error("the end of call %s is too large to be told", call_id)
        # Also what no attempt can tell: the store has it for whoever asks.
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
        shown = msgspec.structs.replace(
            letter, why=_said(letter.why), message=letter.message[:_MOST_SHOWN]
        )
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


def _made(call_id: str, make: Callable[[], list[Record]]) -> list[Record]:
    """Nothing, where nothing can be told of it: that must not keep back the others."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001  whatever it is, only this call has it
        _log.error("the end of call %s cannot be told: %s", call_id, type(error).__name__)
        return []


def _said(text: str) -> str:
    """As much as goes into a message; half a character does not."""
    return text[:_MOST_SAID].encode(errors="replace").decode()


def _bounded(result: Result) -> bytes:
    try:
        return written(result)
    except InvalidRequest:
        return written(msgspec.structs.replace(result, output=_bare(result.output), cut=True))


def _bare(output: Output) -> Output:
    error = output.error
    if error is not None:
        details = error.details if _is_small(error.details) else {}
        error = msgspec.structs.replace(error, message=_said(error.message), details=details)
    return msgspec.structs.replace(output, data=None, error=error, side_effects=())


def _is_small(details: Mapping[str, Any]) -> bool:
    try:
        return len(msgspec.json.encode(details)) <= _MOST_DETAILS
    except (TypeError, ValueError):
        return False
