"""`mcmc`: draws from a density, by the method of Metropolis and Hastings."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.means import Means
from toolgate.tools.native.given import check_bounds, check_expression, check_variables

_SECONDS = 45.0
_MOST = 2_000_000


async def mcmc(  # noqa: PLR0913  as its schema says
    means: Means,
    _call: Call,
    *,
    log_density: str,
    start: dict[str, float],
    bounds: dict[str, list[float | None]] | None = None,
    constants: dict[str, float] | None = None,
    step: float = 1.0,
    samples: int = 5_000,
    warmup: int = 2_000,
    chains: int = 4,
    draws: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """Draw from a density that is known up to a factor.

    Args:
        log_density: its logarithm
        start: a place where it is not zero
        bounds: outside of which it is zero
        constants: names in the expression that have a fixed value
        step: how far the first proposals go
        samples: how many each chain keeps
        warmup: how many it makes before
        chains: how many there are
        draws: how many of the samples to give
        seed: the same one gives the same draws
    """
    known = check_variables(start, constants or ())
    check_expression("The log density", log_density, known)
    check_bounds(bounds or {}, start)
    if (samples + warmup) * chains * len(start) > _MOST:
        raise ToolError(
            f"Steps of all chains times variables are at most {_MOST}. Ask for fewer samples."
        )
    args = {
        "log_density": log_density,
        "start": start,
        "bounds": bounds or {},
        "constants": constants or {},
        "step": step,
        "samples": samples,
        "warmup": warmup,
        "chains": chains,
        "draws": draws,
        "seed": seed,
    }
    return await means.workers.run("toolgate.tools.native.posterior:sample", args, seconds=_SECONDS)
