"""The walk of Metropolis and Hastings as one compiled loop.

Its random numbers are drawn outside, so that a seed gives the same walk everywhere.
Needs numba, so that only workers import this.
"""

# ruff: noqa: PLR0913, PLR0917
# A loop that is compiled takes its arrays one by one; parts of it would cost more than they do.

from typing import Any

import numba
import numpy as np
from numba import float64, int64

from toolgate.tools.native.functions import KEPT, Scalar

_VECTOR, _TABLE = float64[::1], float64[:, ::1]


@numba.njit(
    int64(Scalar, _VECTOR, float64, _TABLE, _VECTOR, _VECTOR, _TABLE, _VECTOR, _TABLE, _VECTOR),
    error_model="numpy",
    cache=KEPT,
)
def walk(
    density: Any,
    values: Any,
    height: Any,
    shape: Any,
    low: Any,
    high: Any,
    normals: Any,
    thresholds: Any,
    places: Any,
    heights: Any,
) -> Any:
    """Write each place and its log density; gives how many proposals were accepted.

    `values` starts with the place to begin at, and ends with the last one. A proposal is `shape`
    times a row of `normals` away; a `threshold` is the logarithm of a number between 0 and 1.
    """
    size, accepted = len(low), 0
    if not len(normals):
        return 0
    for number in range(len(normals)):
        is_within = True
        place = places[number]
        for i in range(size):
            place[i] = values[i]
            for j in range(i + 1):
                values[i] += shape[i, j] * normals[number, j]
            if not low[i] <= values[i] <= high[i]:
                is_within = False
        new = density(values) if is_within else -np.inf
        if new - height >= thresholds[number] and new < np.inf:
            accepted += 1
            height = new
        else:
            for i in range(size):
                values[i] = place[i]
        for i in range(size):
            place[i] = values[i]
        heights[number] = height
    return accepted
