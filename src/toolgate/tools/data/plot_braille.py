"""`plot_braille`: numbers as a plot in a terminal."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.plotting.dotting import dotted
from toolgate.tools.data.plotting.series import is_short
from toolgate.tools.means import Means

# So many characters are drawn in a few milliseconds.
_INLINE = 2_000


async def plot_braille(  # noqa: PLR0913  each is an argument of the tool
    means: Means,
    _call: Call,
    *,
    series: Any,
    x: list[float | None] | None = None,
    kind: str = "line",
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    width: int = 64,
    height: int = 16,
    y_min: float | None = None,
    y_max: float | None = None,
    color: bool = False,
) -> dict[str, Any]:
    """Plot numbers with braille characters.

    Args:
        series: a list of numbers, or lists by name
        x: where they stand, for all series
        kind: line or scatter
        title: above the plot
        x_label: below the axis
        y_label: above the axis
        width: characters of the drawn part
        height: lines of the drawn part
        y_min: the low end of the axis
        y_max: its high end
        color: whether series have colours, for a terminal
    """
    asked: dict[str, Any] = {
        "series": series,
        "x": x,
        "look": {
            "width": width,
            "height": height,
            "title": title,
            "x_label": x_label,
            "y_label": y_label,
            "kind": kind,
            "color": color,
        },
        "y_min": y_min,
        "y_max": y_max,
    }
    if is_short(series) and width * height <= _INLINE:
        return dotted(**asked)
    return await means.workers.run("toolgate.tools.data.plotting.dotting:dotted", asked, seconds=10)
