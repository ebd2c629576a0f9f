"""Real roots of a function that nothing solves exactly: where its sign changes, and between.

Needs numpy, so that only workers import this.
"""

import importlib
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolgate.tools.math.compiled import array_function, packed_system, scalar_function
from toolgate.tools.math.expression import Expression

FARTHEST = 1_000.0
_NEAR, _POINTS = 20.0, 20_001
_MOST = 50
_STARTS = 40
_SMALL = 1e-8


def found_roots(expression: Expression, name: str) -> list[float]:
    """Those between -1,000 and 1,000, closer to zero with a finer step."""
    near = np.linspace(-_NEAR, _NEAR, _POINTS)
    far = np.geomspace(_NEAR, FARTHEST, _POINTS // 4)[1:]
    places = np.concatenate((-far[::-1], near, far))
    with np.errstate(all="ignore"):
        values = np.broadcast_to(array_function(expression, (name,))(places), places.shape)
    function = scalar_function(expression, (name,))
    # Of a stretch on which it is zero everywhere, the first.
    zeros = np.flatnonzero(values == 0)
    found = [float(places[at]) for at in zeros if at == 0 or values[at - 1] != 0]
    changes = np.flatnonzero(np.signbit(values[:-1]) != np.signbit(values[1:]))
    for at in changes[: 4 * _MOST]:
        low, high = float(places[at]), float(places[at + 1])
        if 0 in (values[at], values[at + 1]) or not np.isfinite(values[at : at + 2]).all():
            continue
        root = _bisected(function, low, high)
        if root is not None:
            found.append(root)
    return sorted(set(found), key=abs)[:_MOST]


def _bisected(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Where it passes zero; nothing where it jumps over it, as at a pole."""
    at_low, at_high = _value(function, low), _value(function, high)
    size = max(abs(at_low), abs(at_high))
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        at_middle = _value(function, middle)
        if math.isnan(at_middle):
            return None
        if at_middle == 0:
            return middle
        if (at_middle > 0) == (at_low > 0):
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    best, value = min(((low, at_low), (high, at_high)), key=lambda pair: abs(pair[1]))
    return best if abs(value) <= 1e-6 * max(1.0, size) else None


def _value(function: Callable[[float], float], at: float) -> float:
    try:
        return function(at)
    except (ValueError, ArithmeticError):
        return math.nan


def found_points(
    expressions: Sequence[Expression], names: Sequence[str]
) -> list[tuple[float, ...]]:
    """Points at which all of them are zero, by Newton's way from many starts; always the same."""
    # Half a second, and rarely needed; it has no types of its own.
    root: Any = importlib.import_module("scipy.optimize").root
    system = packed_system(tuple(expressions), tuple(names))

    def values(point: Any) -> Any:
        into = np.zeros(len(names))
        try:
            system([float(one) for one in point], into)
        except (ValueError, ArithmeticError):
            into[:] = np.nan
        return into

    found: list[tuple[float, ...]] = []
    chance = np.random.default_rng(0)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(_STARTS):
            start = chance.normal(size=len(names)) * 10.0 ** (number % 3)
            result: Any = root(values, start, tol=1e-12)
            if result.success and np.abs(values(result.x)).max() <= _SMALL:
                point = tuple(float(one) for one in result.x)
                if not any(np.allclose(point, other, rtol=1e-6, atol=1e-8) for other in found):
                    found.append(point)
    return found[:_MOST]
