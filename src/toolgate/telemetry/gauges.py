"""How things stand: numbers that are read when somebody asks for them, and cost nothing before."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.executor.trace.meter import MOST, OTHER

Values = Mapping[tuple[str, ...], float]
Read = Callable[[], Values | Awaitable[Values]]
T = TypeVar("T")
_log = logging.getLogger("toolgate.metrics")
# What several gauges tell of is looked at once for all of them, and for all who ask in a moment.
_MOMENT_NS = 1_000_000_000


class Gauge(NamedTuple):
    """One number, or one for each set of labels."""

    name: str
    help: str
    read: Read
    labels: tuple[str, ...] = ()
    # A counter only grows, until the process ends.
    kind: str = "gauge"


class Reading(NamedTuple):
    """What a gauge said."""

    gauge: Gauge
    values: Values


class Look(Generic[T]):
    """One look that several gauges share. One that has failed is not tried again in the moment."""

    def __init__(self, look: Callable[[], Awaitable[T]]) -> None:
        self._look = look
        self._seen: asyncio.Future[T] | None = None
        self._seen_ns = 0

    async def at(self) -> T:
        """What was seen a moment ago at the most."""
        now_ns = clock.monotonic_ns()
        if self._seen is None or now_ns - self._seen_ns > _MOMENT_NS:
            self._seen, self._seen_ns = asyncio.ensure_future(self._look()), now_ns
            self._seen.add_done_callback(_heard)
        # Who goes away takes it from nobody else.
        return await asyncio.shield(self._seen)

    def told(self, tell: Callable[[T], Values]) -> Read:
        """A gauge's part of it."""

        async def read() -> Values:
            return tell(await self.at())

        return read


def one(read: Callable[[], float]) -> Read:
    """A number without labels."""
    return lambda: {(): read()}


async def read_all(gauges: Iterable[Gauge]) -> list[Reading]:
    """Those that could be read: a store that is away says nothing, and the others do."""
    found: list[Reading] = []
    for gauge in gauges:
        try:
            values = gauge.read()
            if inspect.isawaitable(values):
                values = await values
        except StoreError as error:
            _log.warning("%s cannot be read (%s)", gauge.name, error.code)
            continue
        found.append(Reading(gauge, _bounded(values)))
    return found


def _heard(seen: "asyncio.Future[Any]") -> None:
    """Also where everyone who asked has gone."""
    if not seen.cancelled():
        seen.exception()


def _bounded(values: Values) -> Values:
    """So many sets of labels are told apart; what is beyond is one sum."""
    if len(values) <= MOST:
        return values
    listed = list(values.items())
    rest = (OTHER,) * len(listed[0][0])
    return dict(listed[:MOST]) | {rest: sum(value for _labels, value in listed[MOST:])}
