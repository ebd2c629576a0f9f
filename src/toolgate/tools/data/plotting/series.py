"""Rows of numbers to plot, as callers give them: a list, or lists by name."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from toolgate.errors import ToolError

MOST = 8
POINTS = 100_000
_FEW = 200
_HOW = 'Write points as [x, y], and several series by name: {"north": [1, 2], "south": [3, 1]}.'


class Series(msgspec.Struct, frozen=True):
    """Points by their order; one without a height is a gap."""

    name: str
    points: tuple[tuple[float, float | None], ...]

    @property
    def heights(self) -> list[float]:
        """Of all points that have one."""
        return [y for _x, y in self.points if y is not None]


def series_of(given: Any, x: Sequence[float | None] | None) -> tuple[Series, ...]:
    """What is to be plotted."""
    named: dict[str, Any]
    if isinstance(given, dict):
        named = cast("dict[str, Any]", given)
    elif isinstance(given, list) and _is_lists(cast("list[Any]", given)):
        named = {f"series {number}": one for number, one in enumerate(given, 1)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        named = {"": given}
    if not named or len(named) > MOST:
        raise ToolError(f"Give 1 to {MOST} series; there are {len(named)}.")
    found = tuple(Series(label(name)[:24], _points(name, one, x)) for name, one in named.items())
    if not any(one.heights for one in found):
        raise ToolError("There is no number to plot. Give a list of numbers.")
    if sum(len(one.points) for one in found) > POINTS:
        raise ToolError(f"There are more than {POINTS:,} points. Give fewer, such as every tenth.")
    return found


def is_short(given: Any) -> bool:
    """Whether it is plotted in a few milliseconds."""
    named = cast("dict[str, Any]", given) if isinstance(given, dict) else {"": given}
    rows = [cast("list[Any]", one) for one in named.values() if isinstance(one, list)]
    if sum(map(len, rows)) > _FEW:
        return False
    inner = [cast("list[Any]", one) for row in rows for one in row if isinstance(one, list)]
    return sum(map(len, inner)) <= 2 * _FEW


def span(values: Iterable[float], low: float | None, high: float | None) -> tuple[float, float]:
    """From the least to the most, unless it is given."""
    found = list(values)
    least = min(found, default=0.0) if low is None else low
    most = max(found, default=1.0) if high is None else high
    if low is not None and high is not None and low >= high:
        raise ToolError("The low end of an axis is not below its high end. Swap them.")
    return (least, most) if least <= most else (min(least, most), max(least, most))


def _is_lists(given: list[Any]) -> bool:
    """Several lists; pairs of two numbers are points of one."""
    lists = [cast("list[Any]", one) for one in given if isinstance(one, list)]
    return len(lists) == len(given) > 0 and any(len(one) != 2 for one in lists)


def label(text: str) -> str:
    """As it may stand in a plot: one line, and nothing in it that steers a terminal."""
    return "".join(one for one in text if one.isprintable())


def _points(
    name: str, given: Any, x: Sequence[float | None] | None
) -> tuple[tuple[float, float | None], ...]:
    if not isinstance(given, list):
        raise ToolError(f"The series {name[:40]!r} is not a list of numbers. {_HOW}")
    values = cast("list[Any]", given)
    if any(isinstance(one, dict) for one in values):
        raise ToolError(f"A series holds numbers, and no objects. {_HOW}")
    if values and all(isinstance(one, list) for one in values):
        return tuple(_pair(name, one) for one in values)
    if x is not None and len(x) != len(values):
        raise ToolError(
            f"The series {name[:40]!r} has {len(values)} values and x has {len(x)}. They go "
            "together: give as many of each, or points as [x, y]."
        )
    places = range(len(values)) if x is None else x
    found = [
        (_number(name, place), _number(name, one))
        for place, one in zip(places, values, strict=True)
    ]
    return tuple((place, one) for place, one in found if place is not None)


def _pair(name: str, given: list[Any]) -> tuple[float, float | None]:
    if len(given) != 2 or (place := _number(name, given[0])) is None:
        raise ToolError(f"A point of the series {name[:40]!r} is not [x, y].")
    return place, _number(name, given[1])


def _number(name: str, given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ToolError(
            f"The series {name[:40]!r} holds {given!r:.40}, which is not a number. Use null for "
            "a gap."
        )
    number = float(given)
    if abs(number) > 1e300:
        raise ToolError("A number beyond 1e300 cannot be plotted. Leave it out, or use null.")
    return number if math.isfinite(number) else None
