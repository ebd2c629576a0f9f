"""CSV text as records, with what was odd about it."""

from typing import Any

from toolgate.errors import ToolError
from toolgate.tools.data.inferring import has_commas, typed
from toolgate.tools.data.separating import rows_of

_WIDEST = 1_000
_CELLS = 400_000


def records(
    *, text: str, delimiter: str, quote: str, header: bool, types: bool, columns: list[str]
) -> dict[str, Any]:
    """All of it; for a worker where it is long."""
    rows, mark = rows_of(text, delimiter, quote)
    notes: list[str] = []
    first = 1
    if header and rows:
        names = rows.pop(0)
        first = 2
    else:
        names = [f"column_{number}" for number in range(1, _width(rows) + 1)]
    _bounded(rows, max(len(names), len(columns)))
    names = _named(columns or names, _width(rows), notes, is_given=bool(columns))
    _even(rows, len(names), first, notes)
    cells: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    cells = cells or [[] for _ in names]
    kinds = dict.fromkeys(names, "string")
    if types:
        for number, name in enumerate(names):
            cells[number], kinds[name] = typed(cells[number])
            if kinds[name] == "string" and has_commas(cells[number]):
                notes.append(
                    f"Column {name} has numbers with a decimal comma, which stay text: replace the "
                    "comma by a point to have numbers."
                )
    found = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
    answer = {
        "rows": found,
        "count": len(found),
        "columns": [{"name": name, "type": kinds[name]} for name in names],
        "delimiter": mark,
    }
    return answer | ({"notes": notes} if notes else {})


def _bounded(rows: list[list[str]], named: int) -> None:
    """One long row makes all of them long."""
    width = max(_width(rows), named)
    if width > _WIDEST or width * len(rows) > _CELLS:
        raise ToolError(
            f"The table has {len(rows):,} rows and {width:,} columns, and may have {_WIDEST:,} "
            f"columns and {_CELLS:,} cells. Convert it in parts, or check the delimiter."
        )


def _width(rows: list[list[str]]) -> int:
    return max(map(len, rows), default=0)


def _named(names: list[str], width: int, notes: list[str], *, is_given: bool) -> list[str]:
    """A name for each column, and none twice."""
    if is_given and width > len(names):
        raise ToolError(
            f"{len(names)} names are given for {width} columns. Name all of them, or none."
        )
    found: dict[str, None] = {}
    for number in range(1, max(width, len(names)) + 1):
        said = names[number - 1].strip() if number <= len(names) else ""
        name, copy = said or f"column_{number}", 1
        while name in found:
            copy += 1
            name = f"{said or 'column'}_{copy}"
        if name != said:
            why = "another has its name" if said else "it has no name in the header"
            notes.append(f"Column {number} is called {name}: {why}.")
        found[name] = None
    return list(found)


def _even(rows: list[list[str]], width: int, first: int, notes: list[str]) -> None:
    """Short rows get empty cells."""
    short = [number for number, row in enumerate(rows, first) if len(row) < width]
    for number in short:
        row = rows[number - first]
        row += [""] * (width - len(row))
    if short:
        rows_have = "1 row has" if len(short) == 1 else f"{len(short)} rows have"
        notes.append(
            f"{rows_have} fewer cells than there are columns, row {short[0]} first; "
            "what is missing is empty."
        )
