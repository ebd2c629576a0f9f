"""`monte_carlo_native`: how an expression of random variables is distributed, by many samples."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.math.names import check_names
from toolgate.tools.means import Means
from toolgate.tools.native.given import check_expression

_SECONDS = 45.0
_PERCENTILES = (5, 25, 50, 75, 95)


async def monte_carlo_native(
    means: Means,
    _call: Call,
    *,
    expression: str,
    variables: dict[str, Any],
    samples: int = 1_000_000,
    tolerance: float = 0.0,
    seed: int = 0,
    percentiles: list[float] | None = None,
    bins: int = 20,
) -> dict[str, Any]:
    """Simulate an expression of random variables, by compiled code.

    Args:
        expression: such as price * quantity - cost
        variables: how each name in it is distributed
        samples: how many are drawn at most
        tolerance: the standard error of the mean that is enough; 0 for all samples
        seed: the same one gives the same numbers
        percentiles: which ones to give
        bins: of the histogram; 0 for none
    """
    check_names(variables)
    check_expression("The expression", expression, variables)
    args = {
        "expression": expression,
        "variables": variables,
        "samples": samples,
        "tolerance": tolerance,
        "seed": seed,
        "percentiles": list(_PERCENTILES if percentiles is None else percentiles),
        "bins": bins,
    }
    return await means.workers.run(
        "toolgate.tools.native.sampling:simulate", args, seconds=_SECONDS
    )
