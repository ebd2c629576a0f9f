"""`optimize`: the lowest or highest value of an expression, by the method of Nelder and Mead."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means
from toolgate.tools.native.given import check_bounds, check_expression, check_variables

_SECONDS = 45.0


async def optimize(  # noqa: PLR0913  as its schema says
    means: Means,
    _call: Call,
    *,
    expression: str,
    start: dict[str, float],
    bounds: dict[str, list[float | None]] | None = None,
    constants: dict[str, float] | None = None,
    goal: str = "minimize",
    restarts: int = 4,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Find the lowest or highest value of an expression.

    Args:
        expression: what to minimise
        start: a first guess for each variable
        bounds: between which variables stay
        constants: names in the expression that have a fixed value
        goal: minimize or maximize
        restarts: how many random starts besides
        tolerance: how small the simplex is at the end
        max_iterations: of each start
        seed: the same one gives the same starts
    """
    known = check_variables(start, constants or ())
    check_expression("The expression", expression, known)
    check_bounds(bounds or {}, start)
    args = {
        "expression": expression,
        "start": start,
        "bounds": bounds or {},
        "constants": constants or {},
        "goal": goal,
        "restarts": restarts,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
        "seed": seed,
    }
    return await means.workers.run("toolgate.tools.native.minimum:optimize", args, seconds=_SECONDS)
