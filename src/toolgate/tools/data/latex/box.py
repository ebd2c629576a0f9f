"""Boxes of characters: what a part of a formula takes up, and the line that it stands on."""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from toolgate.errors import ToolError

Cells = list[str]
LARGEST = 40_000


class Box(NamedTuple):
    """Rows of cells, all as wide as each other; a cell is a character with its marks.

    Boxes beside each other have their base lines on one line.
    """

    rows: tuple[Cells, ...]
    base: int = 0

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.rows[0])

    @property
    def height(self) -> int:
        """Lines."""
        return len(self.rows)

    def text(self) -> str:
        """As it is shown."""
        return "\n".join("".join(row).rstrip() for row in self.rows)


def line(text: str) -> Box:
    """One line. Marks belong to the character before them; a wide one takes two columns."""
    cells: Cells = []
    for sign in text:
        if unicodedata.combining(sign) and cells:
            cells[-1] += sign
        else:
            cells.append(sign)
            if unicodedata.east_asian_width(sign) in "WF":
                cells.append("")
    return Box((cells,))


def block(lines: Sequence[str], base: int) -> Box:
    """Several lines, as wide as the widest."""
    boxes = [line(one) for one in lines]
    width = max(one.width for one in boxes)
    return Box(tuple([*one.rows[0], *[" "] * (width - one.width)] for one in boxes), base)


def beside(boxes: Sequence[Box]) -> Box:
    """From left to right."""
    if not boxes:
        return line("")
    above = max(one.base for one in boxes)
    below = max(one.height - one.base for one in boxes)
    _bound(sum(one.width for one in boxes) * (above + below))
    rows: list[Cells] = [[] for _ in range(above + below)]
    for one in boxes:
        first = above - one.base
        blank = [" "] * one.width
        for number, row in enumerate(rows):
            at = number - first
            row.extend(one.rows[at] if 0 <= at < one.height else blank)
    return Box(tuple(rows), above)


def stacked(boxes: Sequence[Box], base: int, align: str = "c") -> Box:
    """From the top down; `base` counts lines of the whole."""
    width = max(one.width for one in boxes)
    _bound(width * sum(one.height for one in boxes))
    rows = [row for one in boxes for row in padded(one, width, align).rows]
    return Box(tuple(rows), base)


def padded(box: Box, width: int, align: str = "c") -> Box:
    """As wide as that."""
    room = width - box.width
    left = {"l": 0, "r": room}.get(align, room // 2)
    rows = tuple([*[" "] * left, *row, *[" "] * (room - left)] for row in box.rows)
    return Box(rows, box.base)


def _bound(size: int) -> None:
    if size > LARGEST:
        raise ToolError(f"The formula takes more than {LARGEST:,} characters. Render it in parts.")
