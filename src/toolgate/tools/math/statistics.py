"""`statistics`: what describes a list of numbers."""

import math
from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.math.sample import describe
from toolgate.tools.means import Means

# Longer ones are not computed while everybody else waits.
_INLINE = 2_000
_SECONDS = 10.0
_DESCRIBE = "toolgate.tools.math.sample:describe"


async def statistics(
    means: Means, _call: Call, *, data: list[float], percentiles: list[float] | None = None
) -> dict[str, Any]:
    """Describe a list of numbers.

    Args:
        data: the numbers
        percentiles: more of them than the quartiles, from 0 to 100
    """
    try:
        is_finite = all(math.isfinite(one) for one in data)
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise ToolError("A number is too large. Use numbers below 1.7e308, and no infinities.")
    wanted = percentiles or []
    if len(data) <= _INLINE:
        return describe(data, wanted)
    args = {"data": data, "percentiles": wanted}
    return await means.workers.run(_DESCRIBE, args, seconds=_SECONDS)
