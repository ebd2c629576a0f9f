"""Equations, optima and draws: against closed forms, laws that are kept, and known moments."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.late import Late, needs

needs("numba", "skipped: no tools-math")
np: Any = Late("numpy")
trajectory: Any = Late("toolgate.tools.native.trajectory")
minimum: Any = Late("toolgate.tools.native.minimum")
posterior: Any = Late("toolgate.tools.native.posterior")
proposing: Any = Late("toolgate.tools.native.proposing")
sampling: Any = Late("toolgate.tools.native.sampling")
convergence: Any = Late("toolgate.tools.native.convergence")
pytestmark = pytest.mark.req("T1", "T5")
SPRING = {"x": "v", "v": "-w^2*x"}


def spring(w: float = 1.0, end: float = 10.0, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "constants": {"w": w},
        "time": "t",
        "start": 0.0,
        "times": [end * number / 10 for number in range(11)],
        "end": end,
        "events": [],
        "method": "auto",
        "rtol": 1e-8,
        "atol": 1e-10,
        "max_steps": 100_000,
        "initial": {"x": 1.0, "v": 0.0},
    }
    return trajectory.solve(equations=SPRING, **given | more)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 10), st.floats(1, 20), st.sampled_from((1.0, -1.0)))
def test_a_spring_swings_as_the_cosine_and_keeps_its_energy(
    w: float, end: float, forward: float
) -> None:
    found = spring(w, forward * end)
    times, x, v = (np.array(one) for one in (found["times"], *found["values"].values()))
    assert found["complete"]
    assert np.allclose(x, np.cos(w * times), atol=1e-5)
    assert np.allclose(v**2 + w**2 * x**2, w**2, rtol=1e-5)


def test_a_smaller_tolerance_is_a_smaller_error() -> None:
    def error(rtol: float) -> float:
        return abs(spring(rtol=rtol, atol=rtol)["final"]["values"]["x"] - math.cos(10.0))

    assert error(1e-10) < error(1e-7) < error(1e-3)
    assert error(1e-10) < 1e-8


@pytest.mark.parametrize("method", ["rk45", "stiff"])
def test_events_are_found_by_both_methods(method: str) -> None:
    events = [
        {"expression": "x", "direction": "any", "stop": False},
        {"expression": "t - 7", "direction": "rising", "stop": True},
    ]
    found = spring(events=events, method=method, rtol=1e-7)
    times = [one["time"] for one in found["events"]]
    assert np.allclose(times, [math.pi / 2, 3 * math.pi / 2, 7.0], atol=1e-4)
    assert found["stopped_by_event"]
    assert np.isclose(found["final"]["time"], 7.0)
    assert max(found["times"]) <= 7.0


def lowest(**given: Any) -> dict[str, Any]:
    settled = {
        "expression": "(x-a)^2 + 3*(y-b)^2 + (x-a)*(y-b)",
        "start": {"x": 0.0, "y": 0.0},
        "bounds": {},
        "goal": "minimize",
        "restarts": 1,
        "tolerance": 1e-9,
        "max_iterations": 10_000,
        "seed": 0,
    }
    return minimum.optimize(**settled | given)


@settings(max_examples=30, deadline=None)
@given(st.floats(-100, 100), st.floats(-100, 100))
def test_a_bowl_has_its_lowest_point_where_it_is(a: float, b: float) -> None:
    found = lowest(constants={"a": a, "b": b})
    assert found["converged"]
    assert np.allclose(list(found["point"].values()), [a, b], atol=1e-4 * (1 + abs(a) + abs(b)))
    assert found["value"] <= 1e-8


@settings(max_examples=20, deadline=None)
@given(st.floats(-100, 100), st.floats(-100, 100))
def test_no_point_leaves_its_bounds(a: float, b: float) -> None:
    found = lowest(constants={"a": a, "b": b}, bounds={"x": [-1.0, 1.0], "y": [None, 2.0]})
    assert -1.0 <= found["point"]["x"] <= 1.0
    assert found["point"]["y"] <= 2.0


def drawn(**given: Any) -> dict[str, Any]:
    settled: dict[str, Any] = {
        "log_density": "-(x^2 - 2*r*x*y + y^2) / (2*(1 - r^2))",
        "start": {"x": 1.0, "y": 1.0},
        "bounds": {},
        "constants": {"r": 0.8},
        "step": 1.0,
        "samples": 8_000,
        "warmup": 2_000,
        "chains": 4,
        "draws": 2_000,
        "seed": 1,
    }
    return posterior.sample(**settled | given)


def test_draws_have_the_moments_of_their_density() -> None:
    found = drawn()
    assert found["converged"]
    for one in found["variables"].values():
        assert abs(one["mean"]) <= 5 * one["standard_error"]
        assert abs(one["std"] - 1.0) < 0.08
        assert abs(one["percentiles"]["97.5"] - 1.96) < 0.2
        assert 0.99 < one["r_hat"] < 1.01
        assert 500 < one["effective_size"] < 32_000
    x, y = np.array([[one["x"], one["y"]] for one in found["draws"]]).T
    assert abs(np.corrcoef(x, y)[0, 1] - 0.8) < 0.05
    assert all(0.1 < one < 0.6 for one in found["acceptance"])


def test_a_seed_gives_the_same_draws_again() -> None:
    few = {"samples": 200, "warmup": 100}
    assert drawn(**few) == drawn(**few)
    assert drawn(**few)["draws"] != drawn(**few, seed=2)["draws"]


def test_independent_draws_are_worth_what_they_are() -> None:
    chains = np.random.default_rng(0).normal(size=(4, 2_000))
    assert 6_500 < convergence.effective_size(chains) < 9_500
    assert abs(convergence.r_hat(chains) - 1.0) < 0.005
    walks = chains.cumsum(axis=1)
    assert convergence.effective_size(walks) < 50
    assert convergence.r_hat(walks) > 1.1
    assert convergence.r_hat(np.ones((2, 10))) is None


def best(**given: Any) -> dict[str, Any]:
    settled: dict[str, Any] = {
        "objective": "(x-a)^2 + (y+1)^2",
        "bounds": {"x": [-5.0, 5.0], "y": [-3.0, 3.0]},
        "constants": {"a": 2.0},
        "observations": [],
        "goal": "minimize",
        "evaluations": 20,
        "initial": 6,
        "suggestions": 1,
        "noise": 0.0,
        "seed": 0,
    }
    return proposing.search(**settled | given)


def test_few_evaluations_come_near_the_best_point() -> None:
    found = best()
    assert found["best"]["value"] < 0.01
    assert found == best()
    assert len(found["history"]) == 20
    assert found["history"] != best(seed=1)["history"]


def test_suggestions_stay_within_bounds_and_apart() -> None:
    seen = [{"point": {"x": x, "y": 0.5 * x}, "value": x * x} for x in (-4.0, 0.0, 4.0)]
    found = best(objective=None, constants={}, observations=seen, suggestions=4)
    points = {tuple(one["point"].values()) for one in found["suggestions"]}
    assert len(points) == 4
    assert all(-5 <= x <= 5 and -3 <= y <= 3 for x, y in points)


def test_compiled_samples_have_the_moments_of_their_distribution() -> None:
    def told(samples: int = 100_000, seed: int = 1, tolerance: float = 0.0) -> dict[str, Any]:
        return sampling.simulate(
            expression="x * y",
            variables={
                "x": {"distribution": "normal", "mean": 2, "std": 1},
                "y": {"distribution": "exponential", "mean": 3},
            },
            samples=samples,
            tolerance=tolerance,
            seed=seed,
            percentiles=[50],
            bins=4,
        )

    found = told()
    assert abs(found["mean"] - 6.0) <= 5 * found["standard_error"]
    assert abs(found["std"] - math.sqrt(5 * 18 - 36)) < 0.2
    assert found == told()
    assert found["mean"] != told(seed=2)["mean"]
    exact = told(samples=1_000_000, tolerance=0.02)
    assert exact["standard_error"] <= 0.02
    assert exact["samples"] < 1_000_000
