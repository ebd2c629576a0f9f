"""Distributions that random variables can have, by name, with what describes each.

Needs numpy, so that only workers import this.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from toolgate.errors import ToolError
from toolgate.tools.math.vocabulary import suggestion

Parameters: TypeAlias = Mapping[str, Any]
Draw: TypeAlias = Callable[[np.random.Generator, int, Parameters], Any]


@dataclass(frozen=True, slots=True)
class _Distribution:
    """What it needs, what must hold of it, and how numbers are drawn."""

    needs: tuple[str, ...]
    holds: Callable[[Parameters], bool]
    rule: str
    draw: Draw


def _always(_given: Parameters) -> bool:
    return True


_LARGEST_COUNT = 10**12
_MOST_VALUES = 1_000
_NAMED: dict[str, _Distribution] = {
    "normal": _Distribution(
        ("mean", "std"),
        lambda given: given["std"] >= 0,
        "std is not negative",
        lambda chance, count, given: chance.normal(given["mean"], given["std"], count),
    ),
    "uniform": _Distribution(
        ("low", "high"),
        lambda given: given["low"] <= given["high"],
        "low is at most high",
        lambda chance, count, given: chance.uniform(given["low"], given["high"], count),
    ),
    "integer": _Distribution(
        ("low", "high"),
        lambda given: -_LARGEST_COUNT <= given["low"] <= given["high"] <= _LARGEST_COUNT,
        "low and high are whole numbers up to 1e12, and low is at most high",
        lambda chance, count, given: chance.integers(
            int(given["low"]), int(given["high"]), count, endpoint=True
        ).astype(float),
    ),
    "triangular": _Distribution(
        ("low", "mode", "high"),
        lambda given: (
            given["low"] <= given["mode"] <= given["high"] and given["low"] < given["high"]
        ),
        "low, mode and high are in this order",
        lambda chance, count, given: chance.triangular(
            given["low"], given["mode"], given["high"], count
        ),
    ),
    "lognormal": _Distribution(
        ("mean", "std"),
        lambda given: given["std"] >= 0,
        "mean and std are those of the logarithm, and std is not negative",
        lambda chance, count, given: chance.lognormal(given["mean"], given["std"], count),
    ),
    "exponential": _Distribution(
        ("mean",),
        lambda given: given["mean"] > 0,
        "mean is positive",
        lambda chance, count, given: chance.exponential(given["mean"], count),
    ),
    "gamma": _Distribution(
        ("shape", "scale"),
        lambda given: given["shape"] > 0 and given["scale"] > 0,
        "shape and scale are positive",
        lambda chance, count, given: chance.gamma(given["shape"], given["scale"], count),
    ),
    "beta": _Distribution(
        ("alpha", "beta"),
        lambda given: given["alpha"] > 0 and given["beta"] > 0,
        "alpha and beta are positive",
        lambda chance, count, given: chance.beta(given["alpha"], given["beta"], count),
    ),
    "poisson": _Distribution(
        ("mean",),
        lambda given: 0 <= given["mean"] <= _LARGEST_COUNT,
        "mean is between 0 and 1e12",
        lambda chance, count, given: chance.poisson(given["mean"], count).astype(float),
    ),
    "binomial": _Distribution(
        ("n", "p"),
        lambda given: 0 <= given["n"] <= _LARGEST_COUNT and 0 <= given["p"] <= 1,
        "n is a count up to 1e12 and p between 0 and 1",
        lambda chance, count, given: chance.binomial(int(given["n"]), given["p"], count).astype(
            float
        ),
    ),
    "bernoulli": _Distribution(
        ("p",),
        lambda given: 0 <= given["p"] <= 1,
        "p is between 0 and 1",
        lambda chance, count, given: (chance.random(count) < given["p"]).astype(float),
    ),
    "student_t": _Distribution(
        ("df",),
        lambda given: given["df"] > 0,
        "df is positive",
        lambda chance, count, given: chance.standard_t(given["df"], count),
    ),
    "weibull": _Distribution(
        ("shape", "scale"),
        lambda given: given["shape"] > 0 and given["scale"] > 0,
        "shape and scale are positive",
        lambda chance, count, given: chance.weibull(given["shape"], count) * given["scale"],
    ),
    "constant": _Distribution(
        ("value",),
        _always,
        "",
        lambda _chance, count, given: np.full(count, float(given["value"])),
    ),
}
NAMES = (*_NAMED, "choice")


def check(name: str, given: Parameters) -> None:
    """Refuse what does not describe a distribution, and say what is missing."""
    kind = given["distribution"]
    if kind == "choice":
        _check_choice(name, given)
        return
    found = _NAMED.get(kind)
    if found is None:
        raise ToolError(
            f'The distribution of "{name}" is one of {", ".join(NAMES)}.{suggestion(kind, NAMES)}'
        )
    missing = [one for one in found.needs if not _is_number(given.get(one))]
    more = [one for one in given if one not in (*found.needs, "distribution")]
    if missing or more:
        raise ToolError(
            f'A {kind} distribution is described by {", ".join(found.needs)}; for "{name}" '
            + " and ".join(
                [f"{one} is missing" for one in missing]
                + [f"{one} is not one of it" for one in more]
            )
            + "."
        )
    if not found.holds(given):
        raise ToolError(f'For "{name}": {found.rule} in a {kind} distribution.')


def draw(chance: np.random.Generator, count: int, given: Parameters) -> Any:
    """So many random numbers, of a distribution that was checked."""
    if given["distribution"] == "choice":
        weights = given.get("weights")
        shares = None if weights is None else np.array(weights) / math.fsum(weights)
        return chance.choice(np.array(given["values"], dtype=float), count, p=shares)
    return _NAMED[given["distribution"]].draw(chance, count, given)


def _check_choice(name: str, given: Parameters) -> None:
    values, weights = given.get("values"), given.get("weights")
    if not values or set(given) - {"distribution", "values", "weights"}:
        raise ToolError(f'A choice for "{name}" has values, and weights if they are not all alike.')
    if weights is None:
        return
    if len(weights) != len(values) or min(weights) < 0 or not 0 < math.fsum(weights) < math.inf:
        raise ToolError(f'The weights of "{name}": one for each value, none negative, not all 0.')


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
