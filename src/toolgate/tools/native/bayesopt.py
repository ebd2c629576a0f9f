"""`bayesopt`: the lowest or highest value of a costly function, by few evaluations."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.native.given import check_bounds, check_expression, check_variables

_SECONDS = 45.0


async def bayesopt(  # noqa: PLR0913  as its schema says
    means: Means,
    _call: Call,
    *,
    bounds: dict[str, list[float]],
    objective: str | None = None,
    observations: list[dict[str, Any]] | None = None,
    constants: dict[str, float] | None = None,
    goal: str = "minimize",
    evaluations: int = 30,
    initial: int = 8,
    suggestions: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Find the best point of a costly function.

    Args:
        bounds: between which each variable lies
        objective: an expression to compute; without it, points to try are suggested
        observations: what is known already
        constants: names in the objective that have a fixed value
        goal: minimize or maximize
        evaluations: how often the objective is computed
        initial: how many points are spread evenly at first
        suggestions: how many points to try next are given
        noise: the standard deviation of the values
        seed: the same one gives the same points
    """
    known = check_variables(bounds, constants or ())
    check_bounds(bounds, bounds)
    if objective is not None:
        check_expression("The objective", objective, known)
    elif not observations:
        raise ToolError(
            "Give an objective to compute, or observations to suggest the next point from."
        )
    _check_observations(observations or (), bounds)
    args = {
        "objective": objective,
        "bounds": bounds,
        "constants": constants or {},
        "observations": observations or [],
        "goal": goal,
        "evaluations": evaluations,
        "initial": initial,
        "suggestions": suggestions,
        "noise": noise,
        "seed": seed,
    }
    return await means.workers.run("toolgate.tools.native.proposing:search", args, seconds=_SECONDS)


def _check_observations(
    observations: Sequence[Mapping[str, Any]], bounds: Mapping[str, Sequence[float]]
) -> None:
    for number, one in enumerate(observations, 1):
        if set(one["point"]) != set(bounds):
            raise ToolError(f"Observation {number}: give a value for each of {', '.join(bounds)}.")
        for name, (low, high) in bounds.items():
            if not low <= one["point"][name] <= high:
                raise ToolError(f"Observation {number}: {name} lies outside of its bounds.")
