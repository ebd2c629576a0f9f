"""Markdown while it is written: blocks below each other, and what stands within a line."""

import re
from typing import NamedTuple

_SPACE = re.compile(r"[ \t\r\f\v\u00a0]+")
_TICKS = re.compile(r"`+")
# More than that is not written of one page.
MOST = 4_000_000
_HEADING = 200


class Heading(NamedTuple):
    """Where a section begins: the line, its level, its text and how the page calls it."""

    line: int
    level: int
    text: str
    anchor: str


class _Item:
    """One item of a list: its marker is written once, its further lines stand below the first."""

    def __init__(self, marker: str) -> None:
        self.marker = marker
        self.is_fresh = True


class Markdown:
    """`plain`: text alone, without the signs that say what it is."""

    def __init__(self, *, plain: bool) -> None:
        self.plain = plain
        self.lines: list[str] = []
        self.headings: list[Heading] = []
        self.quotes = 0
        self.pieces: list[str] = []
        # How many blocks there were: what began in another one has been written by now.
        self.blocks = 0
        # In a cell nothing begins a block.
        self.is_cell = False
        self._items: list[_Item] = []
        self._counters: list[int | None] = []
        self._was_item = False
        self._length = 0

    @property
    def is_full(self) -> bool:
        """Whether it is long enough."""
        return self._length > MOST

    def put(self, text: str) -> None:
        """A piece of the line."""
        self.pieces.append(text)

    def end(self) -> None:
        """The line is over, if there is one."""
        if self.is_cell:
            self.pieces.append(" ")
        elif self.pieces and (text := self.taken(0)):
            self._write(text.split("\n"))

    def taken(self, start: int) -> str:
        """What has been put since, which is no longer there then."""
        text = _SPACE.sub(" ", "".join(self.pieces[start:]))
        del self.pieces[start:]
        if "\n" not in text:
            return text.strip()
        return "\n".join(line.strip() for line in text.split("\n")).strip()

    def heading(self, level: int, anchor: str) -> None:
        """What has been put is a heading."""
        text = " ".join(self.taken(0).split()).strip("¶§# ")[:_HEADING]
        if not text:
            return
        self._write([text if self.plain else f"{'#' * level} {text}"])
        self.headings.append(Heading(len(self.lines) - 1, level, text, anchor))

    def code(self, text: str, language: str) -> None:
        """A block of it, as it stands."""
        text = text.strip("\n").rstrip()
        if not text:
            return
        if self.plain:
            self._write(text.split("\n"))
            return
        longest = max((len(run) for run in _TICKS.findall(text)), default=0)
        fence = "`" * max(3, longest + 1)
        self._write([f"{fence}{language}", *text.split("\n"), fence])

    def table(self, rows: list[list[str]]) -> None:
        """Rows of cells; the first one is the head of it."""
        width = max((len(row) for row in rows), default=0)
        if width == 0:
            return
        if width == 1 or self.plain:
            self._write([" | ".join(cell for cell in row if cell) for row in rows])
            return
        filled = [row + [""] * (width - len(row)) for row in rows]
        told = [
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in filled
        ]
        self._write([told[0], f"|{' --- |' * width}", *told[1:]])

    def rule(self) -> None:
        """A line across."""
        if not self.plain:
            self._write(["---"])

    def open_list(self, first: int | None) -> None:
        """Items follow, with numbers from `first` on or without."""
        self._counters.append(first)

    def close_list(self) -> None:
        """No more items."""
        if self._counters:
            self._counters.pop()
        if not self._counters:
            # The next list is another one.
            self._was_item = False

    def open_item(self) -> None:
        """What follows is one item."""
        marker = "- "
        if self._counters and (number := self._counters[-1]) is not None:
            marker = f"{number}. "
            self._counters[-1] = number + 1
        self._items.append(_Item(marker))

    def close_item(self) -> None:
        """It is over."""
        if self._items:
            self._items.pop()

    def _write(self, lines: list[str]) -> None:
        if self.is_full:
            return
        self.blocks += 1
        quote = "> " * self.quotes
        is_item = bool(self._items)
        if self.lines and not (is_item and self._was_item):
            self.lines.append(
                quote.rstrip() if self.quotes and self.lines[-1].startswith(">") else ""
            )
        self._was_item = is_item
        first = quote + "".join(map(_first, self._items))
        other = quote + "".join(" " * len(item.marker) for item in self._items)
        for at, line in enumerate(lines):
            whole = ((first if at == 0 else other) + line).rstrip()
            self.lines.append(whole)
            self._length += len(whole) + 1


def _first(item: _Item) -> str:
    if item.is_fresh:
        item.is_fresh = False
        return item.marker
    return " " * len(item.marker)
