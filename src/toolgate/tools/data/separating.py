"""CSV text as rows of cells: the delimiter is found, or given."""

import csv
import io
from collections.abc import Iterator
from itertools import islice

from toolgate.errors import ToolError

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
_TRIED = (",", ";", "\t", "|")
_LOOKED_AT = 50
# A spreadsheet may say its delimiter in the first line.
_SAYS = "sep="


def delimiter_of(word: str) -> str:
    """A delimiter by its name, or itself."""
    found = DELIMITERS.get(word, word)
    if len(found) != 1 or found in "\r\n\"'\0":
        raise ToolError(
            f"{word[:20]!r} is no delimiter. Give one character, or one of auto, "
            f"{', '.join(DELIMITERS)}."
        )
    return found


def found_delimiter(text: str, quote: str) -> str:
    """The one with which the first rows are as wide as each other; a comma where none fits."""
    best, most = ",", 0.0
    for one in _TRIED:
        if one not in text:
            continue
        widths = [len(row) for row in islice(_rows(text, one, quote), _LOOKED_AT) if row]
        if not widths:
            continue
        usual = max(set(widths), key=widths.count)
        # Rows that agree count most; of two that agree, the one with more columns.
        agreement = widths.count(usual) / len(widths) if usual > 1 else 0.0
        worth = agreement + min(usual, 99) / 1_000
        if usual > 1 and worth > most:
            best, most = one, worth
    return best


def rows_of(text: str, delimiter: str, quote: str) -> tuple[list[list[str]], str]:
    """All rows that are not blank, and the delimiter."""
    text = text.removeprefix("\ufeff")
    if text[:4].lower() == _SAYS and text[5:6] in ("\n", "\r"):
        said, text = text[4], text[5:].lstrip("\r\n")
        delimiter = said if delimiter == "auto" else delimiter
    mark = found_delimiter(text, quote) if delimiter == "auto" else delimiter_of(delimiter)
    if mark == quote:
        raise ToolError("The delimiter and the quote are the same. Give two that differ.")
    return [row for row in _rows(text, mark, quote) if row], mark


def _rows(text: str, delimiter: str, quote: str) -> Iterator[list[str]]:
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
    )
    try:
        yield from reader
    except csv.Error as error:
        reason = "a cell is longer than 131,072 characters"
        if "field larger" not in str(error):
            reason = str(error)
        raise ToolError(
            f"The CSV cannot be read at line {reader.line_num}: {reason}. A quote that is never "
            "closed is the usual cause: check there, or give another quote."
        ) from None
