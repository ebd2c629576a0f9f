"""`monte_carlo`: how an expression of random variables is distributed."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.math.expression import parse
from toolgate.tools.math.names import check_names
from toolgate.tools.means import Means

_SIMULATE = "toolgate.tools.math.simulation:simulate"
_SECONDS = 20.0
_PERCENTILES = (5, 25, 50, 75, 95)


async def monte_carlo(
    means: Means,
    _call: Call,
    *,
    expression: str,
    variables: dict[str, Any],
    samples: int = 10_000,
    seed: int = 0,
    percentiles: list[float] | None = None,
    bins: int = 20,
) -> dict[str, Any]:
    """Simulate an expression of random variables.

    Args:
        expression: such as price * quantity - cost
        variables: how each name in it is distributed
        samples: how many are drawn
        seed: the same one gives the same numbers
        percentiles: which ones to give
        bins: of the histogram; 0 for none
    """
    check_names(variables)
    # What is wrong with it is told before a process is started.
    parse(expression).check(variables)
    args = {
        "expression": expression,
        "variables": variables,
        "samples": samples,
        "seed": seed,
        "percentiles": list(_PERCENTILES if percentiles is None else percentiles),
        "bins": bins,
    }
    return await means.workers.run(_SIMULATE, args, seconds=_SECONDS)
