"""Looks for peaks of a density that chains near their start would never come to.

Chains that agree have found the same; whether that is all there is, they cannot know. Scouts start
far away on all sides and only climb.

Needs numpy and numba, so that only workers import this.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

# How far away they start, in steps of the chains or in spreads of what was drawn; on both sides.
_REACHES = (6.0, 20.0, 60.0)
_PARTS = 20
_COUNT = 100
# Of the density at the best place: what is lower hardly counts.
_LOW = 7.0
# Spreads of what was drawn: nearer than this a chain has been there.
_NEAR = 3.0
_MOST_DRAWS = 2_000
# A share of steps that help, and a step that leads nowhere any more.
_WELL = 0.2
_STANDING = 1e-4

Height = Callable[[Any], float]
# From a place, by a shape of proposals, so many times; up only. The last place and what was taken.
Climb = Callable[[Any, Any, int, np.random.Generator], tuple[Any, float]]


class Drawn(NamedTuple):
    """What the chains have seen: places as rows, and the greatest height."""

    places: Any
    best: float


def unseen_peak(
    height: Height, climb: Climb, first: Any, widths: Any, drawn: Drawn, seed: int
) -> Any | None:
    """A place as high as counts where no chain has been, or nothing."""
    chance = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    found: Any = drawn.places.std(axis=0)
    spread = cast("Any", np.where(found > 0, found, widths))
    every = drawn.places[:: max(1, len(drawn.places) // _MOST_DRAWS)]
    unit, middle = np.maximum(widths, spread), drawn.places.mean(axis=0)
    for reach in _REACHES:
        way = chance.normal(size=len(first))
        way /= max(np.abs(way).max(), 1e-9)
        for side in (1.0, -1.0):
            place = first + side * reach * unit * way
            if not math.isfinite(height(place)):
                continue
            scale = 1.0
            for _ in range(_PARTS):
                place, taken = climb(place, np.diag(unit * scale), _COUNT, chance)
                # Steps grow while they help.
                scale *= 2.0 if taken > _WELL else 0.5
                if scale < _STANDING or _away(place - middle, spread).max() < 1.0:
                    break
            nearest = _away(every - place, spread).max(axis=1).min()
            if nearest > _NEAR and height(place) >= drawn.best - _LOW:
                return place
    return None


def _away(difference: Any, spread: Any) -> Any:
    """In spreads, for each variable."""
    return np.abs(difference) / spread
