"""Monte Carlo: an expression of random variables, computed many times, and what comes of it.

Needs numpy, so that only workers import this.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from toolgate.errors import ToolError
from toolgate.tools.math.compiled import array_function
from toolgate.tools.math.distributions import check, draw
from toolgate.tools.math.expression import parse
from toolgate.tools.math.sample import label
from toolgate.tools.math.tree import is_truth

# So many at a time, so that memory does not depend on how many there are in all.
_PART = 50_000
_NORMAL_95 = 1.959963984540054


def simulate(
    expression: str,
    variables: dict[str, Any],
    samples: int,
    seed: int,
    percentiles: list[float],
    bins: int,
) -> dict[str, Any]:
    """The same seed gives the same numbers."""
    drawn = {name: described(given) for name, given in variables.items()}
    for name, given in drawn.items():
        check(name, given)
    found = parse(expression)
    found.check(drawn)
    function = array_function(found, tuple(drawn))
    parts = [
        _part(function, drawn, min(_PART, samples - start), [seed, number])
        for number, start in enumerate(range(0, samples, _PART))
    ]
    values = np.concatenate(parts)
    valid = values[np.isfinite(values)]
    if not valid.size:
        raise ToolError(
            "Not one sample has a value: the expression divides by zero, or is out of a "
            "function's range, for all of them."
        )
    notes: list[str] = []
    if valid.size < samples:
        notes.append(f"{samples - valid.size} samples had no value and were left out.")
    answer = summary(valid, percentiles, bins, notes)
    if is_truth(found.root):
        answer["probability"] = answer["mean"]
    return {**answer, "samples": samples, "seed": seed, "notes": notes}


def described(given: Any) -> Mapping[str, Any]:
    """A plain number is a constant."""
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    return {"distribution": "constant", "value": given}


def _part(function: Any, drawn: Mapping[str, Any], count: int, seed: Sequence[int]) -> Any:
    chance = np.random.default_rng(seed)
    given = [draw(chance, count, one) for one in drawn.values()]
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(function(*given), dtype=float), (count,))


def summary(
    valid: Any, percentiles: Sequence[float], bins: int, notes: list[str]
) -> dict[str, Any]:
    """What is said of values that are all finite; adds to the notes what a reader has to know."""
    with np.errstate(all="ignore"):
        mean, std = float(valid.mean()), float(valid.std(ddof=1)) if valid.size > 1 else 0.0
        error = std / math.sqrt(valid.size)
        shares: list[float] = np.percentile(valid, percentiles).tolist() if percentiles else []
    if not (math.isfinite(mean) and math.isfinite(std)):
        notes.append("What is null is too large for a number.")
    return {
        "valid": int(valid.size),
        "mean": _finite(mean),
        "std": _finite(std),
        "standard_error": _finite(error),
        "confidence_95": [_finite(mean - _NORMAL_95 * error), _finite(mean + _NORMAL_95 * error)],
        "min": float(valid.min()),
        "max": float(valid.max()),
        "percentiles": {
            label(one): _finite(share) for one, share in zip(percentiles, shares, strict=True)
        },
        "histogram": _histogram(valid, bins),
    }


def _histogram(valid: Any, bins: int) -> dict[str, Any] | None:
    if not bins or not math.isfinite(float(valid.max()) - float(valid.min())):
        return None
    counts, edges = np.histogram(valid, bins)
    return {"edges": [float(one) for one in edges], "counts": [int(one) for one in counts]}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
