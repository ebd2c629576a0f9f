"""Answers on the screen: tables on a terminal, plain text in a pipe, JSON when asked."""

import sys
from collections.abc import Sequence
from typing import Any

import orjson


def as_json(value: Any) -> None:
    """Print JSON, indented."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
    sys.stdout.write(text + "\n")


def line(text: str) -> None:
    """Print one line."""
    sys.stdout.write(text + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows; each cell is one line."""
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415  only a terminal pays for it
        from rich.table import Table  # noqa: PLC0415

        drawn = Table(box=None, header_style="bold", pad_edge=False)
        for column in columns:
            drawn.add_column(column)
        for row in rows:
            drawn.add_row(*row)
        Console().print(drawn, markup=False)
        return
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    for row in (columns, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line("  ".join(cells).rstrip())
