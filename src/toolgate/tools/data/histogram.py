"""`histogram`: how numbers are spread, as bars in a terminal."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.plotting.counting import counted
from toolgate.tools.means import Means

_INLINE = 2_000


async def histogram(
    means: Means,
    _call: Call,
    *,
    values: list[float | None],
    bins: int | None = None,
    low: float | None = None,
    high: float | None = None,
    title: str = "",
    width: int = 50,
) -> dict[str, Any]:
    """Show how numbers are spread.

    Args:
        values: the numbers
        bins: how many ranges; round ones that fit, where it is not given
        low: where the first range begins
        high: where the last one ends
        title: above the bars
        width: characters of the longest bar
    """
    asked: dict[str, Any] = {
        "values": values,
        "bins": bins,
        "low": low,
        "high": high,
        "title": title,
        "width": width,
    }
    if len(values) <= _INLINE:
        return counted(**asked)
    return await means.workers.run(
        "toolgate.tools.data.plotting.counting:counted", asked, seconds=10
    )
