"""Draws from a density that is known up to a factor, by several chains that adapt as they warm up.

Needs numpy and numba, so that only workers import this.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolgate.errors import ToolError
from toolgate.tools.native.box import ends
from toolgate.tools.native.convergence import effective_size, r_hat
from toolgate.tools.native.functions import scalar
from toolgate.tools.native.peaks import Drawn, unseen_peak
from toolgate.tools.native.walking import walk

_SHARES = (2.5, 5, 50, 95, 97.5)
_TRIES = 200
# A warm-up in so many parts; after each, proposals take the shape of what was seen.
_PARTS = 10
_WANTED = 0.3
_GOOD_R_HAT = 1.01
_FEW = 100
_TOO_SHORT = 0.9


class _Target(NamedTuple):
    """The density, its constants, and where it is not zero."""

    density: Any
    constants: Any
    low: Any
    high: Any

    def height(self, place: Any) -> float:
        """The logarithm of the density."""
        if ((place < self.low) | (place > self.high)).any():
            return -math.inf
        found = float(self.density(np.concatenate([place, self.constants])))
        return found if found < math.inf else -math.inf

    def climb(
        self, place: Any, shape: Any, count: int, chance: np.random.Generator
    ) -> tuple[Any, float]:
        """Only up: where that comes to, and the share of proposals that were."""
        walked = _walked(self, place, shape, count, chance, only_up=True)
        return walked.places[-1], walked.accepted


class _Chain(NamedTuple):
    """What it drew after the warm-up, and the share of its proposals that were accepted."""

    places: Any
    heights: Any
    accepted: float


def sample(  # noqa: PLR0913  as its tool
    *,
    log_density: str,
    start: Mapping[str, float],
    bounds: Mapping[str, Sequence[float | None]],
    constants: Mapping[str, float],
    step: float,
    samples: int,
    warmup: int,
    chains: int,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    """What the variables are like, and whether the chains agree on it."""
    names = tuple(start)
    low, high = ends(names, bounds)
    target = _Target(
        scalar(log_density, (*names, *constants)), np.array([*constants.values()], float), low, high
    )
    first = np.array(list(start.values()), dtype=float)
    if not math.isfinite(target.height(first)):
        raise ToolError(
            "The log density has no finite value at the start. Start where the density is not zero."
        )
    widths = step * np.maximum(np.abs(first) * 0.1, 1.0)
    seeds = np.random.SeedSequence(seed).spawn(chains)
    found = [
        _chain(target, first, widths, warmup, samples, np.random.default_rng(one)) for one in seeds
    ]
    places = np.stack([one.places for one in found])
    if not np.isfinite(places).all():
        raise ToolError(
            "The chains left for infinity: the density has no finite total. Set bounds or add a "
            "prior."
        )
    # A variable's draws side by side: all that is said of them is computed several times as fast.
    columns = np.ascontiguousarray(places.transpose(2, 0, 1))
    variables = {name: _described(columns[at]) for at, name in enumerate(names)}
    best = max(found, key=lambda one: one.heights.max())
    notes = _notes(variables, found)
    drawn = Drawn(places.reshape(-1, len(names)), float(best.heights.max()))
    peak = unseen_peak(target.height, target.climb, first, widths, drawn, seed)
    if peak is not None:
        notes.append(_elsewhere(names, peak))
    return {
        "variables": variables,
        "acceptance": [round(one.accepted, 4) for one in found],
        "converged": not notes,
        "best": {
            "point": _named(names, best.places[best.heights.argmax()]),
            "log_density": float(best.heights.max()),
        },
        "draws": _thinned(names, places, draws),
        "chains": chains,
        "samples": samples,
        "warmup": warmup,
        "seed": seed,
        "notes": notes,
    }


def _chain(
    target: _Target, first: Any, widths: Any, warmup: int, samples: int, chance: np.random.Generator
) -> _Chain:
    place = _begin(target, first, widths, chance)
    shape = np.diag(widths) * 2.4 / math.sqrt(len(first))
    scale = 1.0
    seen: list[Any] = []
    for part in range(_PARTS):
        count = warmup // _PARTS
        if not count:
            break
        walked = _walked(target, place, shape * scale, count, chance)
        place = walked.places[-1]
        seen.append(walked.places)
        # Too many accepted: too short steps; and the other way round.
        scale *= math.exp(2.0 * (walked.accepted - _WANTED) * (1.0 if part < _PARTS // 2 else 0.5))
        fitted = _fitted(np.concatenate(seen[part // 2 :]), len(first))
        if fitted is not None and part in (2, 4, 6):
            shape, scale = fitted, 1.0
    return _walked(target, place, shape * scale, samples, chance)


def _begin(target: _Target, first: Any, widths: Any, chance: np.random.Generator) -> Any:
    """Apart from each other, so that chains that agree have found the same."""
    reach = 2.0
    for _ in range(_TRIES):
        place = first + reach * widths * chance.normal(size=len(first))
        if math.isfinite(target.height(place)):
            return place
        reach *= 0.9
    return first


def _walked(
    target: _Target,
    place: Any,
    shape: Any,
    count: int,
    chance: np.random.Generator,
    *,
    only_up: bool = False,
) -> _Chain:
    size = len(place)
    places, heights = np.empty((count, size)), np.empty(count)
    values = np.concatenate([place, target.constants])
    normals = chance.normal(size=(count, size))
    thresholds = np.zeros(count) if only_up else np.log(1.0 - chance.random(count))
    accepted = walk(
        target.density,
        values,
        target.height(place),
        np.ascontiguousarray(shape),
        target.low,
        target.high,
        normals,
        thresholds,
        places,
        heights,
    )
    return _Chain(places, heights, accepted / count)


def _fitted(places: Any, size: int) -> Any:
    """The shape of proposals for places like these; nothing where they are too few or all alike."""
    if len(places) < 20 * size:
        return None
    spread = np.atleast_2d(np.cov(places.T))
    with np.errstate(all="ignore"):
        spread = spread + np.diag(np.diag(spread)) * 1e-6
    try:
        return np.linalg.cholesky(spread) * 2.38 / math.sqrt(size)
    except np.linalg.LinAlgError:
        return None


def _described(chains: Any) -> dict[str, Any]:
    every = chains.ravel()
    std = float(every.std(ddof=1))
    size = effective_size(chains)
    shares = np.percentile(every, _SHARES)
    return {
        "mean": float(every.mean()),
        "std": std,
        "standard_error": None if size is None else std / math.sqrt(size),
        "percentiles": {
            f"{one:g}": float(share) for one, share in zip(_SHARES, shares, strict=True)
        },
        "r_hat": r_hat(chains),
        "effective_size": size,
    }


def _notes(variables: Mapping[str, Mapping[str, Any]], found: Sequence[_Chain]) -> list[str]:
    notes: list[str] = []
    stuck = [name for name, one in variables.items() if one["r_hat"] is None]
    apart = [name for name, one in variables.items() if (one["r_hat"] or 0.0) > _GOOD_R_HAT]
    few = [name for name, one in variables.items() if (one["effective_size"] or _FEW) < _FEW]
    if stuck or min(one.accepted for one in found) == 0.0:
        notes.append("A chain never moved: give a smaller step or another start.")
    if max(one.accepted for one in found) > _TOO_SHORT:
        notes.append(
            "A chain took nearly every step, so that its steps were too short: raise warmup, or "
            "start nearer to where the density is high."
        )
    if apart:
        notes.append(
            f"The chains do not agree on {', '.join(apart)} (R-hat above {_GOOD_R_HAT}): raise "
            "samples and warmup, or look for several peaks."
        )
    if few:
        notes.append(f"Few independent draws of {', '.join(few)}: raise samples.")
    return notes


def _elsewhere(names: Sequence[str], peak: Any) -> str:
    at = ", ".join(f"{name} = {float(one):.4g}" for name, one in zip(names, peak, strict=True))
    return (
        f"The density has another peak near {at}, where no chain has been: the result describes "
        "only the surroundings of the start. Start there too and compare, or set bounds."
    )


def _thinned(names: Sequence[str], places: Any, draws: int) -> list[dict[str, float]]:
    every = places.reshape(-1, places.shape[2])
    chosen = np.unique(np.linspace(0, len(every) - 1, min(draws, len(every))).astype(int))
    return [_named(names, one) for one in every[chosen]]


def _named(names: Sequence[str], place: Any) -> dict[str, float]:
    return {name: float(one) for name, one in zip(names, place, strict=True)}
