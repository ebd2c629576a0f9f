"""A canvas of braille characters: each is two dots wide and four high."""

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


class Canvas:
    """Dots from the top left on; each character remembers who drew in it last."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._cells = [[0] * width for _ in range(height)]
        self._owners = [[-1] * width for _ in range(height)]

    @property
    def across(self) -> int:
        """Dots in a row."""
        return 2 * self.width

    @property
    def down(self) -> int:
        """Dots in a column."""
        return 4 * self.height

    def dot(self, x: int, y: int, owner: int) -> None:
        """One; outside of the canvas there is none."""
        if 0 <= x < self.across and 0 <= y < self.down:
            self._cells[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
            self._owners[y // 4][x // 2] = owner

    def rows(self) -> list[list[tuple[str, int]]]:
        """Characters, with who drew them; a space where nobody did."""
        return [
            [(chr(_BLANK + cell) if cell else " ", owner) for cell, owner in zip(*row, strict=True)]
            for row in zip(self._cells, self._owners, strict=True)
        ]
