"""A formula as text, and which commands in it are not known."""

from typing import Any

from toolgate.tools.data.latex.layout import Layout
from toolgate.tools.data.latex.parser import Parser


def rendered(latex: str, style: str) -> dict[str, Any]:
    """All of it; for a worker where it is long."""
    parser = Parser(_visible(latex))
    box = Layout(ascii_=style == "ascii").box(parser.whole())
    answer: dict[str, Any] = {"text": box.text(), "width": box.width, "height": box.height}
    if parser.unknown:
        answer["unknown"] = list(parser.unknown)
        answer["note"] = "Commands that are not known are shown as they are written."
    return answer


def _visible(latex: str) -> str:
    """Without signs that steer a terminal or turn text around, which `\\text` would pass on."""
    return "".join(one for one in latex if one.isprintable() or one in "\n\r\t")
