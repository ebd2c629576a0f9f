"""Answers on the screen: tables on a terminal, plain text in a pipe, JSON when asked.

All that is printed goes through here. What agents, tools and servers wrote can hold signs that move
the cursor, hide or reorder text: each stands as its escape.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import typer

from toolgate.executor.people.visible import visible_json
from toolgate.tenancy import lasting

_NO_STYLES: Mapping[str, str] = {}
# What the next command is given: a part of it is of no use, however narrow the screen is.
_WHOLE = frozenset({"id", "call", "undo call", "anchor"})
# What a list shows the beginning of, on a terminal: one line a row, so that it can be read down.
_BRIEF = "description"
_LEAST_BRIEF = 20


def as_json(value: Any) -> None:
    """Print JSON, indented."""
    line(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode())


def told(value: Any, sentence: str, *, json: bool, notes: Sequence[str] = ()) -> None:
    """What a command did: as a sentence, or as JSON when asked; and what to know about it."""
    if json:
        as_json(value | {"notes": notes} if notes else value)
        return
    for text in (sentence, *notes):
        line(text)


def line(text: str, *, mark: str = "") -> None:
    """Print one line; a `mark` before it is our own, and may have a colour."""
    try:
        sys.stdout.write(f"{mark}{seen(text)}\n")
        flush()
    except OSError as error:
        raise unwritten(error) from None


def raw(text: str) -> None:
    """Print what was looked at sign by sign: a picture in the terminal's own words."""
    try:
        sys.stdout.write(f"{text}\n")
        flush()
    except OSError as error:
        raise unwritten(error) from None


def aside(text: str) -> None:
    """Print a line beside the answer."""
    sys.stderr.write(f"{seen(text)}\n")


def seen(text: str) -> str:
    """Only what can be seen, in line ends and tabs. JSON stays the same JSON."""
    return "\t".join(map(visible_json, text.split("\t")))


def field(name: str, value: object) -> None:
    """Print a name and its value, which stays on its line."""
    line(f"{name:<12}" + str(value).replace("\n", "\\n"))


def flush() -> None:
    """Now, while a failure can still be told, and not at the end of the process."""
    sys.stdout.flush()


def unwritten(error: OSError) -> typer.Exit:
    """The answer reaches nobody: say so where somebody may read it, and end with 1."""
    # Who closes a pipe, such as `head`, has read enough and wants to hear nothing.
    if not isinstance(error, BrokenPipeError):
        told = f"The answer cannot be written ({error.strerror}). What was done stays done."
        sys.stderr.write(told + "\n")
    # What waits in the buffer would fail once more, with a trace, when the process ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return typer.Exit(1)


def warning(text: str) -> None:
    """Tell the operator beside the answer, on one line."""
    aside(f"warning: {' '.join(text.split())}")


def coloured(text: str, colour: int) -> str:
    """In this colour of a terminal, where there is one that wants it."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def moment(at_ns: int) -> str:
    """A moment as every command writes and takes it, such as 2026-11-15T08:00:00Z; or nothing."""
    return lasting.shown(at_ns) or ""


def count(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Mapping[str, str] = _NO_STYLES,
) -> None:
    """Print rows; each cell is one line. A cell that is in `styles` has that colour."""
    rows = [[seen(" ".join(cell.split())) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _drawn(columns, rows, styles)
        return
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    lines: list[str] = []
    for row in (columns, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    line("\n".join(lines))


def _drawn(
    columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Mapping[str, str]
) -> None:
    from rich.console import Console  # noqa: PLC0415  only a terminal pays for it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Table(box=None, header_style="bold", pad_edge=False)
    # Room is scarce: a column in which nothing stands has none.
    shown = [at for at in range(len(columns)) if not rows or any(row[at] for row in rows)]
    columns = [columns[at] for at in shown]
    console = Console()
    rows = _brief(columns, [[row[at] for at in shown] for row in rows], console.width)
    for column in columns:
        stays = column in _WHOLE or column == _BRIEF
        drawn.add_column(column, overflow="fold", no_wrap=stays)
        if column in _WHOLE:
            drawn.columns[-1].min_width = max(len(row[columns.index(column)]) for row in rows)
    for row in rows:
        # As text: a description with [brackets] is no markup.
        drawn.add_row(*(Text(cell, styles.get(cell, "")) for cell in row))
    console.print(drawn, crop=False)


def _brief(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Sequence[Sequence[str]]:
    """Descriptions end where the line does."""
    if _BRIEF not in columns or not rows:
        return rows
    at = columns.index(_BRIEF)
    widths = [max(map(len, column)) + 2 for column in zip(columns, *rows, strict=True)]
    room = max(width - sum(widths) + widths[at], _LEAST_BRIEF)
    return [
        [*row[:at], row[at] if len(row[at]) <= room else row[at][: room - 1] + "…", *row[at + 1 :]]
        for row in rows
    ]
