"""Numbers in ranges, with bars; for a worker where there are many."""

import math
from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.data.plotting.bins import bins_of, text_of
from toolgate.tools.data.plotting.series import series_of, span


def counted(
    *,
    values: list[float | None],
    bins: int | None,
    low: float | None,
    high: float | None,
    title: str,
    width: int,
) -> dict[str, Any]:
    """The bars, and what they show."""
    (series,) = series_of(values, None)
    given = series.heights
    least, most = span(given, low, high)
    numbers = [one for one in given if least <= one <= most]
    if not numbers:
        raise ToolError("No number is between low and high. Widen the range.")
    is_free = bins is None and low is None and high is None
    if bins is None and not is_free:
        bins = 10
    is_whole = is_free and all(map(float.is_integer, numbers))
    found = bins_of(numbers, bins, least, most)
    answer: dict[str, Any] = {
        "text": text_of(found, width, title, is_whole=is_whole),
        "bins": [{"low": one.low, "high": one.high, "count": one.count} for one in found],
        "count": len(numbers),
        "min": min(numbers),
        "max": max(numbers),
        "mean": math.fsum(numbers) / len(numbers),
    }
    if len(numbers) < len(values):
        answer["left_out"] = len(values) - len(numbers)
    return answer
