"""A picture of dots, each of a colour out of a few."""

from toolgate.tools.data.plotting import font
from toolgate.tools.data.plotting.stroke import dots


class Raster:
    """Rows of bytes from the top on; a byte is the number of a colour."""

    def __init__(self, width: int, height: int, ground: int = 0) -> None:
        self.width = width
        self.height = height
        self.rows = [bytearray([ground]) * width for _ in range(height)]

    def dot(self, x: int, y: int, colour: int, size: int = 1) -> None:
        """A square of so many dots; what is outside is not drawn."""
        left, right = max(x, 0), min(x + size, self.width)
        for row in range(max(y, 0), min(y + size, self.height)):
            if left < right:
                self.rows[row][left:right] = bytes([colour]) * (right - left)

    def line(self, one: tuple[int, int], two: tuple[int, int], colour: int, size: int = 1) -> None:
        """From one dot to another."""
        for x, y in dots(one, two):
            self.dot(x, y, colour, size)

    def across(self, y: int, left: int, right: int, colour: int, gap: int = 0) -> None:
        """A level line, dotted where there is a gap."""
        for x in range(left, right + 1, gap + 1):
            self.dot(x, y, colour)

    def down(self, x: int, top: int, bottom: int, colour: int, gap: int = 0) -> None:
        """An upright one."""
        for y in range(top, bottom + 1, gap + 1):
            self.dot(x, y, colour)

    def text(self, x: int, y: int, text: str, colour: int, size: int = 1) -> None:
        """From its top left on."""
        for number, sign in enumerate(text):
            left = x + number * (font.WIDTH + 1) * size
            for column, bits in enumerate(font.columns(sign)):
                for row in range(8):
                    if bits >> row & 1:
                        self.dot(left + column * size, y + row * size, colour, size)
