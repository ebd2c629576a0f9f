"""`plot_function`: functions of x as a plot in a terminal."""

from typing import Any

from toolgate.call import Call
from toolgate.errors import ToolError
from toolgate.tools.data.plotting.chart import Chart, Look
from toolgate.tools.data.plotting.curve import broken, visible
from toolgate.tools.data.plotting.series import MOST, Series, span
from toolgate.tools.math.expression import parse_all
from toolgate.tools.math.names import check_names
from toolgate.tools.means import Means


async def plot_function(  # noqa: PLR0913  each is an argument of the tool
    means: Means,
    _call: Call,
    *,
    expression: str | list[str],
    x_min: float = -10,
    x_max: float = 10,
    y_min: float | None = None,
    y_max: float | None = None,
    variables: dict[str, float] | None = None,
    title: str = "",
    width: int = 64,
    height: int = 16,
    color: bool = False,
) -> dict[str, Any]:
    """Plot functions of x.

    Args:
        expression: such as sin(x)/x, or several
        x_min: where the plot begins
        x_max: where it ends
        y_min: the low end of the axis
        y_max: its high end
        variables: values of other names
        title: above the plot
        width: characters of the drawn part
        height: lines of the drawn part
        color: whether functions have colours, for a terminal
    """
    texts = [expression] if isinstance(expression, str) else expression
    if not 1 <= len(texts) <= MOST:
        raise ToolError(f"Give 1 to {MOST} expressions; there are {len(texts)}.")
    if x_min >= x_max:
        raise ToolError("x_min is not below x_max. Swap them.")
    given = variables or {}
    check_names(given)
    for one in parse_all(texts):
        one.check([*given, "x"])
    asked = {
        "expressions": texts,
        "variables": given,
        "low": x_min,
        "high": x_max,
        "samples": 4 * width + 1,
    }
    curves = await means.workers.run("toolgate.tools.data.plotting.curve:curves", asked, seconds=10)
    found = [
        Series(text if len(texts) > 1 else "", tuple(zip(one["x"], one["y"], strict=True)))
        for text, one in zip(texts, curves, strict=True)
    ]
    seen = [
        end for one in curves if any(y is not None for y in one["y"]) for end in visible(one["y"])
    ]
    up = span(seen, y_min, y_max)
    look = Look(width=width, height=height, title=title, x_label="x", color=color)
    chart = Chart([broken(one, *up) for one in found], (x_min, x_max), up, look)
    answer: dict[str, Any] = {
        "text": chart.text(),
        "x": [x_min, x_max],
        "y": [chart.y.low, chart.y.high],
        "functions": [
            {
                "expression": text,
                "min": min(one.heights, default=None),
                "max": max(one.heights, default=None),
                "gaps": curve["gaps"],
            }
            for text, one, curve in zip(texts, found, curves, strict=True)
        ],
    }
    if any(not chart.y.low <= y <= chart.y.high for one in found for y in one.heights):
        answer["note"] = "Some values are beyond the picture. Pass y_min and y_max to see others."
    return answer
