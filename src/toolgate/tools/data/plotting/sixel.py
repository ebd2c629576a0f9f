"""Pictures as sixel text: six rows of dots at a time, one colour after the other."""

import re
from collections.abc import Sequence

from toolgate.tools.data.plotting.raster import Raster

Colour = tuple[int, int, int]
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)
_BAND = 6


def encoded(raster: Raster, palette: Sequence[Colour]) -> str:
    """The whole sequence for a terminal; colours are parts of 255."""
    parts = [f'\x1bP0;1;0q"1;1;{raster.width};{raster.height}']
    for number, colour in enumerate(palette):
        red, green, blue = (round(one * 100 / 255) for one in colour)
        parts.append(f"#{number};2;{red};{green};{blue}")
    parts += [
        _band(raster.rows[top : top + _BAND], len(palette))
        for top in range(0, raster.height, _BAND)
    ]
    return "".join(parts) + "\x1b\\"


def _band(rows: Sequence[bytearray], colours: int) -> str:
    used = sorted(set(b"".join(bytes(row) for row in rows)))
    lines = [f"#{colour}{_line(rows, colour)}" for colour in used if colour < colours]
    return "$".join(lines) + "-"


def _line(rows: Sequence[bytearray], colour: int) -> str:
    """All dots of a colour. A byte never reaches 64, so that rows add up as one long number."""
    total = 0
    for number, row in enumerate(rows):
        table = bytearray(256)
        table[colour] = 1 << number
        total |= int.from_bytes(row.translate(bytes(table)), "big")
    signs = total.to_bytes(len(rows[0]), "big").translate(_SIGNS).rstrip(b"?")
    return _RUN.sub(lambda run: b"!%d%b" % (len(run[0]), run[1]), signs).decode("ascii")


_SIGNS = bytes((one & 63) + 63 for one in range(256))
