"""A plot as a picture: series in a frame, with a grid, round numbers and names."""

from collections.abc import Sequence

from toolgate.tools.data.plotting import font
from toolgate.tools.data.plotting.chart import Look
from toolgate.tools.data.plotting.raster import Raster
from toolgate.tools.data.plotting.scale import Scale, scale
from toolgate.tools.data.plotting.series import Series
from toolgate.tools.data.plotting.sixel import Colour
from toolgate.tools.data.plotting.stroke import Frame

NAMES = ("blue", "orange", "green", "red", "purple", "brown", "pink", "teal")
_INK: tuple[Colour, ...] = (
    (31, 119, 180),
    (235, 120, 15),
    (44, 160, 44),
    (214, 39, 40),
    (148, 103, 189),
    (140, 86, 75),
    (227, 119, 194),
    (23, 160, 170),
)
_LIGHT: tuple[Colour, ...] = ((255, 255, 255), (205, 205, 210), (60, 60, 70))
_DARK: tuple[Colour, ...] = ((24, 26, 32), (66, 70, 80), (220, 220, 225))
GROUND, GRID, TEXT, FIRST = range(4)
_LARGE = 500


class Picture:
    """Sizes are in dots."""

    def __init__(
        self,
        series: Sequence[Series],
        x: tuple[float, float],
        y: tuple[float, float],
        look: Look,
        *,
        dark: bool,
    ) -> None:
        self._series = series
        self._look = look
        self._size = 2 if look.width >= _LARGE else 1
        self.palette = (*(_DARK if dark else _LIGHT), *_INK)
        self.raster = Raster(look.width, look.height, GROUND)
        letter = (font.WIDTH + 1) * self._size
        self.y: Scale = scale(*y, max(3, look.height // (24 * self._size)), is_loose=True)
        self.x: Scale = scale(*x, max(3, look.width // (letter * 8)), is_loose=False)
        line = (font.HEIGHT + 4) * self._size
        self._left = letter * max(map(len, self.y.labels)) + 4 * self._size
        self._top = line * (1 + bool(look.title) + bool(look.y_label or self._has_names()))
        self._top -= line // 2
        self._right = look.width - letter * 2
        self._bottom = look.height - line * (1 + bool(look.x_label)) - 3 * self._size
        self._frame = Frame(self.x.low, self.y.low, self.x.high, self.y.high)

    def draw(self) -> Raster:
        """All of it."""
        self._grid()
        for number, one in enumerate(self._series):
            self._draw(one, FIRST + number % len(_INK))
        self._words()
        return self.raster

    def _has_names(self) -> bool:
        return any(one.name for one in self._series)

    def _grid(self) -> None:
        size, raster = self._size, self.raster
        for value, label in zip(self.y.ticks, self.y.labels, strict=True):
            y = self._place((self.x.low, value))[1]
            raster.across(y, self._left, self._right, GRID, gap=1)
            left = self._left - font.width(label, size) - 3 * size
            raster.text(left, y - font.HEIGHT * size // 2, label, TEXT, size)
        for value, label in zip(self.x.ticks, self.x.labels, strict=True):
            x = self._place((value, self.y.low))[0]
            raster.down(x, self._top, self._bottom, GRID, gap=1)
            half = font.width(label, size) // 2
            left = min(max(x - half, 0), self._look.width - 2 * half - 1)
            raster.text(left, self._bottom + 4 * size, label, TEXT, size)
        raster.across(self._bottom, self._left, self._right, TEXT)
        raster.down(self._left, self._top, self._bottom, TEXT)

    def _draw(self, series: Series, colour: int) -> None:
        before: tuple[float, float] | None = None
        is_line = self._look.kind == "line"
        for number, (x, y) in enumerate(series.points):
            point = None if y is None else (x, y)
            if point is not None and before is not None and is_line:
                part = self._frame.cut(before, point)
                if part is not None:
                    self.raster.line(self._place(part[0]), self._place(part[1]), colour, 2)
            elif point is not None and self._frame.has(point):
                follows = series.points[number + 1 : number + 2]
                if not is_line or not follows or follows[0][1] is None:
                    across, down = self._place(point)
                    self.raster.dot(across - 2, down - 2, colour, 5)
            before = point

    def _words(self) -> None:
        look, size = self._look, self._size
        letter, line = (font.WIDTH + 1) * size, (font.HEIGHT + 4) * size
        y = 2 * size
        if look.title:
            room = (look.width - font.width(look.title, size)) // 2
            self.raster.text(max(room, 0), y, look.title, TEXT, size)
            y += line
        x = self._left
        if look.y_label:
            self.raster.text(2 * size, y, look.y_label, TEXT, size)
            x = max(x, 2 * size + font.width(look.y_label, size) + 2 * letter)
        for number, one in enumerate(self._series):
            if one.name:
                colour = FIRST + number % len(_INK)
                middle = y + font.HEIGHT * size // 2
                self.raster.line((x, middle), (x + 2 * letter, middle), colour, 2)
                self.raster.text(x + 2 * letter + 3 * size, y, one.name, TEXT, size)
                x += font.width(one.name, size) + 4 * letter
        if look.x_label:
            room = (self._left + self._right - font.width(look.x_label, size)) // 2
            self.raster.text(max(room, 0), look.height - line, look.x_label, TEXT, size)

    def _place(self, point: tuple[float, float]) -> tuple[int, int]:
        across = self._left + round(self.x.part(point[0]) * (self._right - self._left))
        up = self._bottom - round(self.y.part(point[1]) * (self._bottom - self._top))
        return across, up
