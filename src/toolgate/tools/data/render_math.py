"""`render_math`: formulas in LaTeX as text that a terminal shows."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.latex.rendering import rendered
from toolgate.tools.means import Means

_INLINE = 300


async def render_math(
    means: Means, _call: Call, *, latex: str, style: str = "unicode"
) -> dict[str, Any]:
    """Render LaTeX as text.

    Args:
        latex: the formula
        style: unicode or ascii
    """
    asked = {"latex": latex, "style": style}
    if len(latex) <= _INLINE:
        return rendered(**asked)
    return await means.workers.run(
        "toolgate.tools.data.latex.rendering:rendered", asked, seconds=10
    )
