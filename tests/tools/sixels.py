"""Sixel text as a picture again: what a terminal would show."""

import re
import struct
import zlib

_WORD = re.compile(
    r'"(?P<raster>[0-9;]*)|#(?P<colour>[0-9;]+)|!(?P<run>[0-9]+)(?P<again>[?-~])|(?P<one>[?-~$-])'
)


def decoded(text: str) -> tuple[list[list[int]], dict[int, tuple[int, int, int]]]:
    """Rows of colours' numbers (-1 where nothing was drawn), and the colours."""
    assert text.startswith("\x1bP")
    assert text.endswith("\x1b\\")
    body = text[text.index("q") + 1 : -2]
    palette: dict[int, tuple[int, int, int]] = {}
    rows: list[list[int]] = []
    x = y = colour = 0
    at = 0
    while at < len(body):
        word = _WORD.match(body, at)
        assert word is not None, body[at : at + 20]
        at = word.end()
        if word["raster"] is not None:
            _, _, width, height = map(int, word["raster"].split(";"))
            rows = [[-1] * width for _ in range(height)]
        elif word["colour"] is not None:
            number, *rest = map(int, word["colour"].split(";"))
            colour = number
            if rest:
                assert rest[0] == 2
                palette[number] = (rest[1], rest[2], rest[3])
        elif word["one"] == "$":
            x = 0
        elif word["one"] == "-":
            x, y = 0, y + 6
        else:
            sign, many = word["one"] or word["again"], int(word["run"] or 1)
            for row in range(6):
                if (ord(sign) - 63) >> row & 1:
                    rows[y + row][x : x + many] = [colour] * many
            x += many
    return rows, palette


def coloured(rows: list[list[int]], palette: dict[int, tuple[int, int, int]]) -> bytes:
    """Three bytes a dot; a zero before each row, as PNG has it."""
    ink = {number: bytes(round(one * 2.55) for one in colour) for number, colour in palette.items()}
    return b"".join(b"\0" + b"".join(ink.get(one, b"\0\0\0") for one in row) for row in rows)


def png(rows: list[list[int]], palette: dict[int, tuple[int, int, int]]) -> bytes:
    """The same as a file that people can look at."""
    raw = coloured(rows, palette)
    head = struct.pack("!IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack("!I", len(data)) + name + data + struct.pack("!I", zlib.crc32(name + data))
        for name, data in parts
    )


def uncoloured(file: bytes) -> bytes:
    """The dots of such a file."""
    at, parts = 8, b""
    while at < len(file):
        (size,) = struct.unpack_from("!I", file, at)
        if file[at + 4 : at + 8] == b"IDAT":
            parts += file[at + 8 : at + 8 + size]
        at += 12 + size
    return zlib.decompress(parts)
