"""Sends what waits in the store to the brokers: calls to workers, and ends that nobody heard of."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from toolgate import clock
from toolgate.brokers.line import Fate, Line, Record
from toolgate.brokers.seal import Seal
from toolgate.call import Failure, Output
from toolgate.errors import StoreError
from toolgate.queue.message import VERSION, carried, output_text
from toolgate.queue.queue import Ended, Queue
from toolgate.queue.shipping import Parcel, Shipping, Untold
from toolgate.settings.fleet import Fleet

_log = logging.getLogger("toolgate.queue")
_AT_ONCE = 500
# How soon a call is sent that another process queued.
_LOOK = 0.1
_AGAIN = 1.0
# Whoever ended a call tells of it; after so long, whoever sends does.
_PATIENCE = 5.0
_ROUND_NS = 1_000_000_000


class Tells(Protocol):
    """What tells of ends."""

    async def later(self, ended: Sequence[Untold]) -> None: ...


class _Traced(msgspec.Struct):
    trace: dict[str, str] = {}


_traced = msgspec.json.Decoder(_Traced).decode


class Publisher:
    """One of each process; several of them share the work."""

    def __init__(
        self,
        queue: Queue,
        shipping: Shipping,
        line: Line,
        tells: Tells,
        fleet: Fleet,
        seal: Seal,
    ) -> None:
        self._queue = queue
        self._seal = seal
        self._shipping = shipping
        self._line = line
        self._tells = tells
        self._fleet = fleet
        self._news = asyncio.Event()
        self._looked_ns = 0

    def woken(self) -> None:
        """Something was queued here, or has ended that others waited behind."""
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled. A store or a broker that is away is asked again."""
        while True:
            self._news.clear()
            try:
                sent = await self.once()
            except StoreError as error:
                _log.warning("calls wait to be sent: %s", error)
                await asyncio.sleep(_AGAIN)
                continue
            except Exception as error:  # noqa: BLE001  whoever sends must not end before the rest
                _log.error("calls wait to be sent: %s", type(error).__name__)
                await asyncio.sleep(_AGAIN)
                continue
            if not sent:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._news.wait()

    async def once(self) -> int:
        """Send what is due; how many that were."""
        # Nothing is called sent before somebody is there to take it.
        if not await self._line.ready():
            return 0
        await self._look_for_untold()
        if not await self._shipping.waits():
            return 0
        fleet = self._fleet
        parcels = await self._shipping.send(_AT_ONCE, window=fleet.window, again=fleet.lease)
        if not parcels:
            return 0
        records: list[Record] = []
        ready: list[str] = []
        dead: dict[str, str] = {}
        for one in parcels:
            try:
                records.append(self._record(one))
                ready.append(one.call_id)
            except Exception as error:  # noqa: BLE001  one call's trouble is not that of the others
                dead[one.call_id] = f"it cannot be sent to one ({type(error).__name__})"
        fates = dict(zip(ready, await self._line.send(records), strict=True))
        lost = [name for name, fate in fates.items() if fate is Fate.LOST]
        if lost:
            await self._shipping.unsent(lost)
        large = [name for name, fate in fates.items() if fate is Fate.TOO_LARGE]
        dead |= dict.fromkeys(large, "it is too large for a message to one")
        await self._bury(dead)
        return len(parcels) - len(lost)

    async def _bury(self, dead: Mapping[str, str]) -> None:
        """What no attempt gets to a worker; whoever waits for it is told why."""
        if not dead:
            return
        for taken in await self._queue.claim(list(dead), self._fleet.lease):
            why = (
                f"No worker could run {taken.tool!r}: {dead[taken.call_id]}. It did not run. An "
                "operator can look at it."
            )
            failure = Failure(code="undelivered", message=why)
            output = Output(status="error", error=failure, call_id=taken.call_id)
            ended = Ended(
                call_id=taken.call_id, fence=taken.fence, output=output_text(output), why=why
            )
            if await self._queue.end(ended):
                _log.error("call %s of %s is dead: %s", taken.call_id, taken.tool, why)

    async def _look_for_untold(self) -> None:
        now = clock.monotonic_ns()
        if now - self._looked_ns < _ROUND_NS:
            return
        self._looked_ns = now
        found = await self._shipping.untold(_AT_ONCE, after=_PATIENCE)
        if found:
            await self._tells.later(found)

    def _record(self, one: Parcel) -> Record:
        trace = carried(_traced(one.message).trace)
        return Record(
            self._fleet.topics.requests,
            one.key.encode(),
            one.message,
            (
                ("toolgate-version", str(VERSION).encode()),
                ("toolgate-tenant", one.tenant.encode()),
                *self._seal.headers(one.message),
                *((name, value.encode()) for name, value in trace.items()),
            ),
        )
