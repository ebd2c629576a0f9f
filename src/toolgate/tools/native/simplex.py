"""The simplex method of Nelder and Mead as one compiled loop, with coefficients that fit the size.

`values` holds the variables and then constants. All is written with plain loops, over arrays that
are made outside: compiling it then takes a fraction of the time.

Needs numba, so that only workers import this.
"""

# ruff: noqa: C901, PLR0912, PLR0913, PLR0917
# A loop that is compiled takes its arrays one by one; parts of it would cost more than they do.

from typing import Any

import numba
import numpy as np
from numba import float64, int64

from toolgate.tools.native.functions import KEPT, Scalar

_compiled = numba.njit(error_model="numpy")


@_compiled
def _at(function: Any, values: Any, point: Any, low: Any, high: Any, sign: Any) -> Any:
    """The height of a point, which is moved within the bounds; what has no value is no valley."""
    for i in range(len(point)):
        point[i] = min(max(point[i], low[i]), high[i])
        values[i] = point[i]
    found = sign * function(values)
    return np.inf if np.isnan(found) else found


@_compiled
def _is_small(corners: Any, heights: Any, best: Any, tolerance: Any) -> Any:
    """Whether the simplex is as small, and as flat, as is wanted."""
    for i in range(len(corners)):
        if not abs(heights[i] - heights[best]) <= tolerance * (1.0 + abs(heights[best])):
            return False
        for j in range(len(corners) - 1):
            reach = tolerance * (1.0 + abs(corners[best, j]))
            if not abs(corners[i, j] - corners[best, j]) <= reach:
                return False
    return True


@_compiled
def _replace(corners: Any, heights: Any, which: Any, point: Any, height: Any) -> Any:
    heights[which] = height
    for j in range(len(point)):
        corners[which, j] = point[j]


_VECTOR, _TABLE = float64[::1], float64[:, ::1]


@numba.njit(
    int64(
        Scalar,
        _VECTOR,
        _TABLE,
        _VECTOR,
        _VECTOR,
        _VECTOR,
        float64,
        float64,
        int64,
        _TABLE,
        _VECTOR,
    ),
    error_model="numpy",
    cache=KEPT,
)
def descend(
    function: Any,
    values: Any,
    corners: Any,
    heights: Any,
    low: Any,
    high: Any,
    sign: Any,
    tolerance: Any,
    most: Any,
    room: Any,
    told: Any,
) -> Any:
    """Gives the lowest corner; `told` has iterations, calls, and 1 where it settled."""
    size = len(corners) - 1
    fit = max(size, 2)
    for i in range(size + 1):
        heights[i] = _at(function, values, corners[i], low, high, sign)
    told[1] = size + 1
    best = 0
    while True:
        best, worst, next_worst = 0, 0, -1
        for i in range(size + 1):
            best = i if heights[i] < heights[best] else best
            worst = i if heights[i] >= heights[worst] else worst
        for i in range(size + 1):
            if i != worst and (next_worst < 0 or heights[i] > heights[next_worst]):
                next_worst = i
        if _is_small(corners, heights, best, tolerance):
            told[2] = 1.0
            break
        if told[0] >= most:
            break
        told[0] += 1
        middle, point = room[0], room[1]
        for j in range(size):
            middle[j] = -corners[worst, j] / size
            for i in range(size + 1):
                middle[j] += corners[i, j] / size
            point[j] = 2.0 * middle[j] - corners[worst, j]
        height = _at(function, values, point, low, high, sign)
        told[1] += 1
        if heights[best] <= height < heights[next_worst]:
            _replace(corners, heights, worst, point, height)
            continue
        factor = 1.0 + 2.0 / fit
        if height >= heights[best]:
            factor = (0.75 - 0.5 / fit) * (1.0 if height < heights[worst] else -1.0)
        for j in range(size):
            room[2, j] = middle[j] + factor * (middle[j] - corners[worst, j])
        second = _at(function, values, room[2], low, high, sign)
        told[1] += 1
        if second < min(height, heights[worst]):
            _replace(corners, heights, worst, room[2], second)
        elif height < heights[best]:
            _replace(corners, heights, worst, point, height)
        else:
            for i in range(size + 1):
                if i == best:
                    continue
                for j in range(size):
                    corners[i, j] += (corners[best, j] - corners[i, j]) / fit
                heights[i] = _at(function, values, corners[i], low, high, sign)
            told[1] += size
    return best
