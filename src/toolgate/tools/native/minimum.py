"""The lowest or highest value of an expression: several descents, and what they agree on.

Needs numpy and numba, so that only workers import this.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolgate.errors import ToolError
from toolgate.tools.native.box import EDGE, ends
from toolgate.tools.native.functions import scalar
from toolgate.tools.native.simplex import descend

# Its types are of no use with bounds that have none.
_where: Any = np.where
_FAR = 1e100
_AGREE = 1e-4


class _Run(NamedTuple):
    """One descent: where it ended, and how."""

    point: Any
    height: float
    rounds: int
    calls: int
    is_settled: bool


def optimize(  # noqa: PLR0913  as its tool
    *,
    expression: str,
    start: Mapping[str, float],
    bounds: Mapping[str, Sequence[float | None]],
    constants: Mapping[str, float],
    goal: str,
    restarts: int,
    tolerance: float,
    max_iterations: int,
    seed: int,
) -> dict[str, Any]:
    """From the start, and from random points; the best of them, gone over once more."""
    names = tuple(start)
    function = scalar(expression, (*names, *constants))
    low, high = ends(names, bounds)
    values = np.array([*start.values(), *constants.values()], dtype=float)
    sign = -1.0 if goal == "maximize" else 1.0
    first = np.clip(np.array(list(start.values()), dtype=float), low, high)

    def run(at: Any, share: float) -> _Run:
        size = len(names)
        corners, heights, told = _corners(at, share, low, high), np.empty(size + 1), np.zeros(3)
        room = np.empty((3, size))
        best = descend(
            function,
            values,
            corners,
            heights,
            low,
            high,
            sign,
            tolerance,
            max_iterations,
            room,
            told,
        )
        return _Run(corners[best], float(heights[best]), int(told[0]), int(told[1]), bool(told[2]))

    chance = np.random.default_rng(seed)
    runs = [run(first, 1.0)]
    runs += [run(_elsewhere(chance, first, low, high), 1.0) for _ in range(restarts)]
    best = min(runs, key=lambda one: one.height)
    # A simplex can collapse before it is there; a fresh one shows whether it had.
    runs.append(run(best.point, 0.1) if np.abs(best.point).max() < _FAR else best)
    if runs[-1].height <= best.height:
        best = runs[-1]
    return _answer(best, runs, names, sign, (low, high))


def _answer(
    best: _Run, runs: Sequence[_Run], names: Sequence[str], sign: float, ends: tuple[Any, Any]
) -> dict[str, Any]:
    if best.height == math.inf:
        raise ToolError(
            "The expression has no value at any point that was tried. Start where it has one, "
            "or set bounds."
        )
    notes: list[str] = []
    is_far = not math.isfinite(best.height) or bool((np.abs(best.point) > _FAR).any())
    if is_far:
        notes.append("It grows without bound in this direction: set bounds.")
    elif not best.is_settled:
        notes.append("It had not settled when its iterations were used up. Raise max_iterations.")
    reach = _AGREE * (1.0 + abs(best.height))
    agreeing = sum(1 for one in runs[:-1] if one.height - best.height <= reach)
    if not is_far and len(runs) > 2 and agreeing < len(runs) - 1:
        notes.append(
            f"{agreeing} of {len(runs) - 1} starts came to this value: there are other local "
            "optima, and a better one may exist."
        )
    low, high = ends
    at_bounds = [
        name
        for name, one, down, up in zip(names, best.point, low, high, strict=True)
        if one in (down, up) and abs(one) < EDGE
    ]
    return {
        "point": {name: float(one) + 0.0 for name, one in zip(names, best.point, strict=True)},
        "value": sign * best.height + 0.0 if math.isfinite(best.height) else None,
        "converged": best.is_settled and not is_far,
        "at_bounds": at_bounds,
        "starts": len(runs) - 1,
        "agreeing": agreeing,
        "iterations": sum(one.rounds for one in runs),
        "evaluations": sum(one.calls for one in runs),
        "notes": notes,
    }


def _corners(at: Any, share: float, low: Any, high: Any) -> Any:
    """The first simplex: a tenth of what is known of the scale."""
    reach = high - low
    widths = _where(reach < EDGE, 0.2 * reach, 0.1 * np.abs(at) + 0.25)
    widths = _where(at + share * widths > high, -widths, widths) * share
    return np.vstack([at, at + np.diag(widths)])


def _elsewhere(chance: np.random.Generator, first: Any, low: Any, high: Any) -> Any:
    around = first + chance.normal(size=len(first)) * (2.0 + 2.0 * np.abs(first))
    share = chance.random(len(first))
    inside = low + share * (high - low)
    return np.clip(_where(high - low < EDGE, inside, around), low, high)
