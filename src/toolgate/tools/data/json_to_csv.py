"""`json_to_csv`: records as CSV, safe to open in a spreadsheet."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.given import written as as_text
from toolgate.tools.data.writing_csv import written
from toolgate.tools.means import Means

_INLINE = 20_000


async def json_to_csv(
    means: Means,
    _call: Call,
    *,
    data: Any,
    columns: list[str] | None = None,
    delimiter: str = "comma",
    header: bool = True,
    guard: bool = True,
    flatten: bool = False,
    newline: str = "lf",
) -> dict[str, Any]:
    """Convert JSON to CSV.

    Args:
        data: a list of objects, as a value or as JSON text
        columns: which, in which order
        delimiter: what stands between cells
        header: whether the first row names the columns
        guard: whether cells that look like formulas are made harmless
        flatten: whether objects in records become columns of their own
        newline: lf or crlf
    """
    asked: dict[str, Any] = {
        "data": data,
        "columns": columns or [],
        "delimiter": delimiter,
        "header": header,
        "guard": guard,
        "flatten": flatten,
        "newline": newline,
    }
    if len(as_text(data)) <= _INLINE:
        return written(**asked)
    return await means.workers.run("toolgate.tools.data.writing_csv:written", asked, seconds=20)
