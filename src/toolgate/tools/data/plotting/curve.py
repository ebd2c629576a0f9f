"""Functions of x as points: sampled, with gaps where they have no value, and a fitting height."""

from itertools import pairwise
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.data.plotting.series import Series
from toolgate.tools.math.evaluate import evaluate
from toolgate.tools.math.expression import Expression, parse

# What lies so many times as far away as the rest is left out of the picture.
_FAR = 6.0
_HIGHEST = 1e300


def curves(
    expressions: list[str], variables: dict[str, float], low: float, high: float, samples: int
) -> list[dict[str, Any]]:
    """For a worker: heights at even steps, and why there are none where there are none."""
    step = (high - low) / (samples - 1)
    places = [low + number * step for number in range(samples)]
    # Nearly zero is zero: 1/x has a gap there.
    places = [0.0 if abs(one) < abs(step) / 1e6 else one for one in places]
    return [_curve(parse(text), variables, places) for text in expressions]


def _curve(
    expression: Expression, variables: dict[str, float], places: list[float]
) -> dict[str, Any]:
    expression.check([*variables, "x"])
    heights: list[float | None] = []
    trouble = ""
    for place in places:
        try:
            found = evaluate(expression, {**variables, "x": place})
            height = float(found)
            heights.append(height if abs(height) < _HIGHEST else None)
        except ToolError as error:
            trouble = trouble or error.message
            heights.append(None)
        except (OverflowError, ZeroDivisionError, ValueError):
            heights.append(None)
    if trouble and all(one is None for one in heights):
        raise ToolError(f"{expression.text[:60]} has no value from {places[0]:g} on. {trouble}")
    return {"x": places, "y": heights, "gaps": heights.count(None)}


def visible(heights: list[float | None]) -> tuple[float, float]:
    """The heights to show: near a pole, without those that would make all else flat."""
    ordered = sorted(one for one in heights if one is not None)
    low, high = ordered[0], ordered[-1]
    tenth = len(ordered) // 10
    inner_low, inner_high = ordered[tenth], ordered[-1 - tenth]
    room = inner_high - inner_low
    if room > 0 and high - low > _FAR * room and _steepest(heights) > room:
        return max(low, inner_low - room), min(high, inner_high + room)
    return low, high


def _steepest(heights: list[float | None]) -> float:
    steps = [
        abs(two - one) for one, two in pairwise(heights) if one is not None and two is not None
    ]
    return max(steps, default=0.0)


def broken(series: Series, low: float, high: float) -> Series:
    """With a gap where it jumps from one end of the picture to the other, as tan does."""
    found: list[tuple[float, float | None]] = []
    before: float | None = None
    for x, y in series.points:
        if y is not None and before is not None and _jumps(before, y, low, high):
            found.append((x, None))
        found.append((x, y))
        before = y
    return Series(series.name, tuple(found))


def _jumps(one: float, two: float, low: float, high: float) -> bool:
    if (one > high and two < low) or (one < low and two > high):
        return True
    # Both ends are on the picture's edge or beyond, and nothing is between them.
    return abs(two - one) > high - low and not (low < one < high or low < two < high)
