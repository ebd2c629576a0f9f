"""A plot of series in braille dots; for a worker where there are many."""

from typing import Any

from toolgate.tools.data.plotting.chart import Chart, Look
from toolgate.tools.data.plotting.series import series_of, span


def dotted(
    *,
    series: Any,
    x: list[float | None] | None,
    look: dict[str, Any],
    y_min: float | None,
    y_max: float | None,
) -> dict[str, Any]:
    """The plot, and what it shows."""
    found = series_of(series, x)
    across = span((place for one in found for place, _y in one.points), None, None)
    up = span((height for one in found for height in one.heights), y_min, y_max)
    chart = Chart(found, across, up, Look(**look))
    return {
        "text": chart.text(),
        "x": [across[0], across[1]],
        "y": [chart.y.low, chart.y.high],
        "series": [
            {
                "name": one.name,
                "count": len(one.heights),
                "min": min(one.heights, default=None),
                "max": max(one.heights, default=None),
            }
            for one in found
        ],
    }
