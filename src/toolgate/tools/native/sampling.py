"""Monte Carlo with compiled expressions: many samples, until they are enough.

Needs numpy and numba, so that only workers import this.
"""

import math
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numba import float64

from toolgate.errors import ToolError
from toolgate.tools.math.distributions import check, draw
from toolgate.tools.math.expression import parse
from toolgate.tools.math.simulation import described, summary
from toolgate.tools.math.tree import is_truth
from toolgate.tools.native.functions import KEPT, Scalar, scalar

# So many at a time: what is drawn for them stays in the processor's cache.
_PART = 20_000
_LEAST = 1_000


@numba.njit(numba.void(Scalar, float64[:, ::1], float64[::1]), error_model="numpy", cache=KEPT)
def _fill(function: Any, rows: Any, into: Any) -> Any:
    for i in range(len(into)):
        into[i] = function(rows[i])


def simulate(
    expression: str,
    variables: Mapping[str, Any],
    samples: int,
    tolerance: float,
    seed: int,
    percentiles: list[float],
    bins: int,
) -> dict[str, Any]:
    """Until there are enough samples, or the mean is as exact as is wanted."""
    drawn = {name: described(given) for name, given in variables.items()}
    for name, given in drawn.items():
        check(name, given)
    function = scalar(expression, tuple(drawn))
    values = np.empty(samples)
    count = done = 0
    total = square = 0.0
    is_enough = False
    while done < samples and not is_enough:
        part = values[done : done + _PART]
        _draw(function, drawn, part, np.random.default_rng([seed, done // _PART]))
        done += len(part)
        good = part[np.isfinite(part)]
        with np.errstate(all="ignore"):
            count, total = count + len(good), total + float(good.sum())
            square += float(good @ good)
        is_enough = tolerance > 0.0 and _error(count, total, square) <= tolerance
    return _answer(expression, values[:done], tolerance, seed, percentiles, bins)


def _draw(function: Any, drawn: Mapping[str, Any], into: Any, chance: np.random.Generator) -> None:
    rows = np.empty((len(into), max(len(drawn), 1)))
    for at, one in enumerate(drawn.values()):
        rows[:, at] = draw(chance, len(into), one)
    _fill(function, rows, into)


def _error(count: int, total: float, square: float) -> float:
    """Of the mean so far."""
    if count < _LEAST:
        return math.inf
    mean = total / count
    return math.sqrt(max(square / count - mean * mean, 0.0) / count)


def _answer(
    expression: str, values: Any, tolerance: float, seed: int, percentiles: list[float], bins: int
) -> dict[str, Any]:
    valid = values[np.isfinite(values)]
    if not valid.size:
        raise ToolError(
            "Not one sample has a value: the expression divides by zero, or is out of a "
            "function's range, for all of them."
        )
    notes: list[str] = []
    if valid.size < len(values):
        notes.append(f"{len(values) - valid.size} samples had no value and were left out.")
    answer = summary(valid, percentiles, bins, notes)
    error = answer["standard_error"]
    if tolerance and (error is None or error > tolerance * (1.0 + 1e-6)):
        notes.append("The mean is not as exact as was asked for. Raise samples.")
    if is_truth(parse(expression).root):
        answer["probability"] = answer["mean"]
    return {**answer, "samples": len(values), "seed": seed, "notes": notes}
