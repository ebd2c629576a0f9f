"""Records as CSV text, which a spreadsheet shows and does not run."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from toolgate.errors import ToolError
from toolgate.tools.data.given import value
from toolgate.tools.data.separating import delimiter_of

# What a spreadsheet takes for a formula, the wide forms of Asian keyboards included. What nobody
# sees may stand before it.
_FORMULA = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
    r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]"
)
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?\Z")
_LARGEST = 3_000_000


class Writer:
    """One text's."""

    def __init__(self, *, delimiter: str, newline: str, guard: bool) -> None:
        self._delimiter = delimiter
        self._newline = newline
        self._guard = guard
        self._quoted = re.compile(f'[{re.escape(delimiter)}"\\r\\n]|^ | $')
        self._lines: list[str] = []
        self._size = 0
        self.guarded = 0

    def row(self, cells: Sequence[Any]) -> None:
        """One line."""
        line = self._delimiter.join([self._cell(one) for one in cells])
        # A line with nothing on it is no row.
        line = (line or '""') + self._newline
        self._lines.append(line)
        self._size += len(line)
        if self._size > _LARGEST:
            raise ToolError(f"The CSV gets longer than {_LARGEST:,} characters. Convert less.")

    def text(self) -> str:
        """All lines."""
        return "".join(self._lines)

    def _cell(self, found: Any) -> str:
        if found is None or (isinstance(found, float) and not math.isfinite(found)):
            return ""
        if isinstance(found, bool):
            return "true" if found else "false"
        if isinstance(found, (int, float)):
            text = repr(found)
        else:
            text = found if isinstance(found, str) else orjson.dumps(found).decode()
        is_text = not isinstance(found, (int, float))
        if is_text and self._guard and _FORMULA.match(text) and not _NUMBER.match(text):
            self.guarded += 1
            text = "'" + text
        if self._quoted.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text


def written(
    *,
    data: Any,
    columns: list[str],
    delimiter: str,
    header: bool,
    guard: bool,
    flatten: bool,
    newline: str,
) -> dict[str, Any]:
    """All of it; for a worker where it is long."""
    records = _records(value(data))
    if flatten:
        records = [_flat(one) for one in records]
    names = columns or list(dict.fromkeys(name for one in records for name in one))
    unknown = [name for name in columns if records and not any(name in one for one in records)]
    if unknown:
        raise ToolError(
            f"No record has the column {unknown[0]!r}. There are: "
            f"{', '.join(dict.fromkeys(name for one in records for name in one))[:400]}."
        )
    writer = Writer(
        delimiter=delimiter_of(delimiter),
        newline="\r\n" if newline == "crlf" else "\n",
        guard=guard,
    )
    if header and names:
        writer.row(names)
    for one in records:
        writer.row([one.get(name) for name in names])
    answer: dict[str, Any] = {
        "csv": writer.text(),
        "count": len(records),
        "columns": names,
        "guarded": writer.guarded,
    }
    if writer.guarded:
        answer["note"] = (
            f"Cells that look like formulas begin with an apostrophe now: {writer.guarded}. Pass "
            "guard: false to keep them as they are, for programs that are no spreadsheets."
        )
    return answer


def _records(found: Any) -> list[dict[str, Any]]:
    """A list of objects or of lists; lists by columns, or one object, are taken too."""
    if isinstance(found, dict):
        fields = cast("dict[str, Any]", found)
        if fields and all(isinstance(one, list) for one in fields.values()):
            return _by_columns(cast("dict[str, list[Any]]", fields))
        return [fields]
    if not isinstance(found, list):
        raise ToolError("There is nothing to make rows of. Give a list of objects.")
    rows = cast("list[Any]", found)
    if all(isinstance(one, dict) for one in rows):
        return cast("list[dict[str, Any]]", rows)
    if all(isinstance(one, list) for one in rows):
        return [{f"column_{at}": cell for at, cell in enumerate(one, 1)} for one in rows]
    if any(isinstance(one, (dict, list)) for one in rows):
        raise ToolError("The list mixes objects and other values. Give a list of objects.")
    return [{"value": one} for one in rows]


def _by_columns(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    sizes = {len(one) for one in columns.values()}
    if len(sizes) > 1:
        raise ToolError(
            "The columns have different lengths. Give lists of one length, or a list of objects."
        )
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Objects in it become columns such as `address.city`; lists stay."""
    found: dict[str, Any] = {}
    waiting = list(reversed(list(record.items())))
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict) and one:
            inner = cast("dict[str, Any]", one)
            waiting += [(f"{name}.{key}", part) for key, part in reversed(list(inner.items()))]
        else:
            found[name] = one
    return found
