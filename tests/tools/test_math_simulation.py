"""Monte Carlo: what is drawn is distributed as it says, and a seed gives the same again."""

import math
from typing import Any

import pytest

from toolgate.errors import ToolError
from toolgate.tools.table import table

simulate: Any = pytest.importorskip(
    "toolgate.tools.math.simulation", reason="skipped: no tools-math"
).simulate
distributions: Any = pytest.importorskip("toolgate.tools.math.distributions")
pytestmark = pytest.mark.req("T1")
SAMPLES = 20_000


def told(expression: str, variables: dict[str, Any], **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"samples": SAMPLES, "seed": 1, "percentiles": [50], "bins": 10}
    return simulate(expression=expression, variables=variables, **given | more)


@pytest.mark.parametrize(
    ("given", "mean", "std"),
    [
        ({"distribution": "normal", "mean": 2, "std": 3}, 2, 3),
        ({"distribution": "uniform", "low": 0, "high": 12}, 6, math.sqrt(12)),
        ({"distribution": "integer", "low": 1, "high": 6}, 3.5, math.sqrt(35 / 12)),
        ({"distribution": "triangular", "low": 0, "mode": 0, "high": 3}, 1, math.sqrt(0.5)),
        (
            {"distribution": "lognormal", "mean": 0, "std": 0.5},
            math.exp(0.125),
            math.sqrt((math.exp(0.25) - 1) * math.exp(0.25)),
        ),
        ({"distribution": "exponential", "mean": 4}, 4, 4),
        ({"distribution": "gamma", "shape": 4, "scale": 2}, 8, 4),
        ({"distribution": "beta", "alpha": 2, "beta": 2}, 0.5, math.sqrt(0.05)),
        ({"distribution": "poisson", "mean": 9}, 9, 3),
        ({"distribution": "binomial", "n": 100, "p": 0.5}, 50, 5),
        ({"distribution": "bernoulli", "p": 0.2}, 0.2, 0.4),
        ({"distribution": "student_t", "df": 10}, 0, math.sqrt(10 / 8)),
        ({"distribution": "weibull", "shape": 1, "scale": 2}, 2, 2),
        ({"distribution": "choice", "values": [0, 10], "weights": [3, 1]}, 2.5, math.sqrt(18.75)),
        ({"distribution": "constant", "value": 7}, 7, 0),
    ],
)
def test_numbers_are_distributed_as_they_say(given: Any, mean: float, std: float) -> None:
    found = told("x", {"x": given})
    assert abs(found["mean"] - mean) <= 5 * std / math.sqrt(SAMPLES)
    assert math.isclose(found["std"], std, rel_tol=0.05, abs_tol=1e-12)
    assert sum(found["histogram"]["counts"]) == found["valid"] == SAMPLES


def test_the_schema_names_every_distribution() -> None:
    schema = table()["monte_carlo"].definition["input_schema"]
    described = schema["properties"]["variables"]["additionalProperties"]["properties"]
    assert tuple(described["distribution"]["enum"]) == distributions.NAMES


def test_a_seed_gives_the_same_again_and_another_one_does_not() -> None:
    variables = {"x": {"distribution": "normal", "mean": 0, "std": 1}}
    one = told("x^2", variables, samples=120_000)
    assert told("x^2", variables, samples=120_000) == one
    assert told("x^2", variables, samples=120_000, seed=2)["mean"] != one["mean"]


def test_a_condition_has_a_probability() -> None:
    dice = {name: {"distribution": "integer", "low": 1, "high": 6} for name in ("a", "b")}
    found = told("a + b >= 10", dice)
    assert abs(found["probability"] - 1 / 6) < 0.02
    low, high = found["confidence_95"]
    assert low < found["mean"] < high
    assert "probability" not in told("a + b", dice)


def test_what_is_too_large_is_nothing() -> None:
    found = told("x", {"x": {"distribution": "choice", "values": [1.7e308, -1.7e308]}})
    assert found["std"] is None
    assert found["histogram"] is None
    assert found["notes"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distribution": "normal", "mean": 0, "std": -1}, "not negative"),
        ({"distribution": "triangular", "low": 3, "mode": 2, "high": 5}, "in this order"),
        ({"distribution": "binomial", "n": 1e15, "p": 0.5}, "up to 1e12"),
        ({"distribution": "choice", "values": [1, 2], "weights": [1]}, "one for each value"),
        ({"distribution": "choice", "values": [1], "weights": [0]}, "not all 0"),
        ({"distribution": "choice"}, "has values"),
        ({"distribution": "norml", "mean": 0}, 'Did you mean "normal"'),
    ],
)
def test_what_describes_no_distribution_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        told("x", {"x": given})
