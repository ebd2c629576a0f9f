"""A plot in text: series on a braille canvas, between axes with round numbers."""

from collections.abc import Sequence

import msgspec

from toolgate.tools.data.plotting.canvas import Canvas
from toolgate.tools.data.plotting.scale import Scale, scale
from toolgate.tools.data.plotting.series import Series
from toolgate.tools.data.plotting.series import label as shown
from toolgate.tools.data.plotting.stroke import Frame, dots

_COLOURS = (36, 33, 35, 32, 34, 31, 96, 93)
_LEAST_WIDTH = 8
_LOW = 12
# So few points of a scatter plot are drawn larger.
_FEW = 300


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How a plot is shown; sizes in characters, of the drawn part."""

    width: int = 64
    height: int = 16
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    kind: str = "line"
    color: bool = False


def _upright(y: tuple[float, float], height: int) -> tuple[Scale, int]:
    """An axis whose numbers are as many lines apart as each other, and how many lines it takes."""
    best: tuple[Scale, int] | None = None
    most_worth = 0.0
    for most in range(height // (2 if height <= _LOW else 3) + 1, 2, -1):
        found = scale(*y, most, is_loose=True)
        steps = len(found.ticks) - 1
        lines = max((height - 1) // steps, 1) * steps + 1
        # A number more is worth a line and a half.
        worth = lines + 1.5 * steps
        if worth > most_worth and lines <= height + 1:
            best, most_worth = (found, lines), worth
    return best or (scale(*y, 3, is_loose=True), max(height, 3))


class Chart:
    """Series in a frame."""

    def __init__(
        self, series: Sequence[Series], x: tuple[float, float], y: tuple[float, float], look: Look
    ) -> None:
        self._series = series
        self._look = look
        self.y, lines = _upright(y, look.height)
        self.x: Scale = scale(*x, look.width // 10, is_loose=False)
        self._frame = Frame(self.x.low, self.y.low, self.x.high, self.y.high)
        self._canvas = Canvas(max(look.width, _LEAST_WIDTH), lines)

    def text(self) -> str:
        """All of it, line by line."""
        for owner, one in enumerate(self._series):
            self._draw(one, owner)
        margin = max(map(len, self.y.labels))
        lines = self._body(margin) + self._below(margin)
        if self._look.y_label:
            lines.insert(0, shown(self._look.y_label))
        if self._look.title:
            title = shown(self._look.title)
            lines.insert(0, title.center(margin + 2 + self._canvas.width).rstrip())
        return "\n".join(lines)

    def _draw(self, series: Series, owner: int) -> None:
        before: tuple[float, float] | None = None
        is_line, is_few = self._look.kind == "line", len(series.points) <= _FEW
        for x, y in series.points:
            point = None if y is None else (x, y)
            if point is not None and self._frame.has(point):
                self._mark(*self._place(point), owner, large=not is_line and is_few)
            if is_line and point is not None and before is not None:
                part = self._frame.cut(before, point)
                if part is not None:
                    for dot in dots(self._place(part[0]), self._place(part[1])):
                        self._canvas.dot(*dot, owner)
            before = point

    def _mark(self, x: int, y: int, owner: int, *, large: bool) -> None:
        self._canvas.dot(x, y, owner)
        if large:
            for across, down in ((1, 0), (0, 1), (1, 1)):
                self._canvas.dot(x + across, y + down, owner)

    def _place(self, point: tuple[float, float]) -> tuple[int, int]:
        across = round(self.x.part(point[0]) * (self._canvas.across - 1))
        up = round(self.y.part(point[1]) * (self._canvas.down - 1))
        return across, self._canvas.down - 1 - up

    def _body(self, margin: int) -> list[str]:
        marks = {
            self._row(one): label for one, label in zip(self.y.ticks, self.y.labels, strict=True)
        }
        names = self._names()
        lines: list[str] = []
        for number, row in enumerate(self._canvas.rows()):
            label = marks.get(number)
            axis = "│" if label is None else "┤"
            drawn = "".join(self._shown(sign, owner) for sign, owner in row)
            name, owner = names.get(number, ("", -1))
            if name:
                drawn += " " + self._shown(name, owner)
            lines.append(f"{label or '':>{margin}} {axis}{drawn}".rstrip())
        return lines

    def _row(self, value: float) -> int:
        return self._place((self.x.low, value))[1] // 4

    def _shown(self, text: str, owner: int) -> str:
        if not self._look.color or owner < 0 or text == " ":
            return text
        return f"\x1b[{_COLOURS[owner % len(_COLOURS)]}m{text}\x1b[0m"

    def _names(self) -> dict[int, tuple[str, int]]:
        """Names of series beside where they end; one that finds its place taken moves on."""
        found: dict[int, tuple[str, int]] = {}
        rows = sorted((self._end(one), owner) for owner, one in enumerate(self._series) if one.name)
        for row, owner in rows:
            free = [one for one in range(self._canvas.height) if one not in found]
            if free:
                nearest = min(free, key=lambda one: (abs(one - row), one < row))
                found[nearest] = (self._series[owner].name, owner)
        return found

    def _end(self, series: Series) -> int:
        seen = [(x, y) for x, y in series.points if y is not None]
        inside = [one for one in seen if self._frame.has(one)] or seen
        if not inside:
            return 0
        last = max(inside, key=lambda one: one[0])
        return min(max(self._place(last)[1] // 4, 0), self._canvas.height - 1)

    def _below(self, margin: int) -> list[str]:
        """The axis, its numbers, and what they are."""
        width = self._canvas.width
        axis, numbers = ["─"] * width, [" "] * (width + margin + 16)
        end = 0
        for value, label in zip(self.x.ticks, self.x.labels, strict=True):
            at = round(self.x.part(value) * (self._canvas.across - 1)) // 2
            axis[at] = "┬"
            start = max(margin + 2 + at - len(label) // 2, 0)
            if start >= end:
                numbers[start : start + len(label)] = label
                end = start + len(label) + 1
        lines = [" " * (margin + 1) + "└" + "".join(axis), "".join(numbers).rstrip()]
        if self._look.x_label:
            lines.append((" " * (margin + 2) + shown(self._look.x_label).center(width)).rstrip())
        return lines
