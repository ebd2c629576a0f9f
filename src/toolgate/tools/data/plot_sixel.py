"""`plot_sixel`: numbers as a picture that terminals with sixel graphics show."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.means import Means


async def plot_sixel(  # noqa: PLR0913  each is an argument of the tool
    means: Means,
    _call: Call,
    *,
    series: Any,
    x: list[float | None] | None = None,
    kind: str = "line",
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    width: int = 640,
    height: int = 384,
    y_min: float | None = None,
    y_max: float | None = None,
    dark: bool = False,
) -> dict[str, Any]:
    """Plot numbers as sixel graphics.

    Args:
        series: a list of numbers, or lists by name
        x: where they stand, for all series
        kind: line or scatter
        title: above the plot
        x_label: below the axis
        y_label: above the axis
        width: dots across
        height: dots down
        y_min: the low end of the axis
        y_max: its high end
        dark: whether the ground is dark
    """
    asked: dict[str, Any] = {
        "series": series,
        "x": x,
        "look": {
            "kind": kind,
            "title": title,
            "x_label": x_label,
            "y_label": y_label,
            "width": width,
            "height": height,
        },
        "y_min": y_min,
        "y_max": y_max,
        "dark": dark,
    }
    return await means.workers.run("toolgate.tools.data.plotting.drawing:drawn", asked, seconds=10)
