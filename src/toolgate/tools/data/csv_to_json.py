"""`csv_to_json`: CSV as records, with numbers and truth where columns hold them."""

from typing import Any

from toolgate.call import Call
from toolgate.tools.data.reading_csv import records
from toolgate.tools.means import Means

_INLINE = 6_000


async def csv_to_json(
    means: Means,
    _call: Call,
    *,
    csv: str,
    delimiter: str = "auto",
    quote: str = '"',
    header: bool = True,
    types: bool = True,
    columns: list[str] | None = None,
) -> dict[str, Any]:
    """Convert CSV to JSON.

    Args:
        csv: the text
        delimiter: auto, or which
        quote: what cells are quoted with
        header: whether the first row names the columns
        types: whether numbers and truth are told from texts
        columns: names instead of the header's
    """
    asked: dict[str, Any] = {
        "text": csv,
        "delimiter": delimiter,
        "quote": quote,
        "header": header,
        "types": types,
        "columns": columns or [],
    }
    if len(csv) <= _INLINE:
        return records(**asked)
    return await means.workers.run("toolgate.tools.data.reading_csv:records", asked, seconds=20)
