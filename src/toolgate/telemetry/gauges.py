"""How things stand: numbers that are read when somebody asks for them, and cost nothing before."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from toolgate.errors import StoreError
from toolgate.executor.trace.meter import MOST, OTHER

Values = Mapping[tuple[str, ...], float]
Read = Callable[[], Values | Awaitable[Values]]
_log = logging.getLogger("toolgate.metrics")


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


def _bounded(values: Values) -> Values:
    """So many sets of labels are told apart; what is beyond is one sum."""
    if len(values) <= MOST:
        return values
    listed = list(values.items())
    rest = (OTHER,) * len(listed[0][0])
    return dict(listed[:MOST]) | {rest: sum(value for _labels, value in listed[MOST:])}
