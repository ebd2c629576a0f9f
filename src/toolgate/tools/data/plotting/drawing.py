"""A picture of series as sixel text. For a worker: it takes some ten milliseconds."""

from typing import Any

from toolgate.tools.data.plotting.chart import Look
from toolgate.tools.data.plotting.picture import NAMES, Picture
from toolgate.tools.data.plotting.series import series_of, span
from toolgate.tools.data.plotting.sixel import encoded


def drawn(
    *,
    series: Any,
    x: list[float | None] | None,
    look: dict[str, Any],
    y_min: float | None,
    y_max: float | None,
    dark: bool,
) -> dict[str, Any]:
    """The picture, and what it shows."""
    found = series_of(series, x)
    across = span((place for one in found for place, _y in one.points), None, None)
    up = span((height for one in found for height in one.heights), y_min, y_max)
    picture = Picture(found, across, up, Look(**look), dark=dark)
    text = encoded(picture.draw(), picture.palette)
    return {
        "sixel": text,
        "width": look["width"],
        "height": look["height"],
        "bytes": len(text),
        "x": [across[0], across[1]],
        "y": [picture.y.low, picture.y.high],
        "series": [
            {
                "name": one.name,
                "color": NAMES[number % len(NAMES)],
                "count": len(one.heights),
                "min": min(one.heights, default=None),
                "max": max(one.heights, default=None),
            }
            for number, one in enumerate(found)
        ],
    }
