"""What a column of texts holds: numbers and truth where all of its cells say so.

Nothing is lost: what begins with a zero, or has more digits than a number keeps, stays text.
"""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})\Z")
_REAL = re.compile(
    r"[+-]?(0|[1-9][0-9]*)?\.[0-9]+([eE][+-]?[0-9]{1,3})?\Z"
    r"|[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?[eE][+-]?[0-9]{1,3}\Z"
)
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+\Z")
_TRUTH = {"true": True, "false": False}
_DIGITS = 15


def typed(cells: Sequence[str]) -> tuple[list[Any], str]:
    """The values of a column, and what they are; an empty cell is null."""
    said = [one.strip() for one in cells]
    full = [one for one in said if one]
    if not full:
        return [None] * len(said), "null"
    for kind, fits, read in _KINDS:
        if all(map(fits, full)):
            return [read(one) if one else None for one in said], kind
    return [one or None for one in cells], "string"


def has_commas(cells: Sequence[Any]) -> bool:
    """Whether all are numbers as many people write them: 1,5."""
    full = [one for one in cells if one]
    return bool(full) and all(
        isinstance(one, str) and (_COMMA.match(one.strip()) or _WHOLE.match(one.strip()))
        for one in full
    )


def _is_whole(text: str) -> bool:
    return _WHOLE.match(text) is not None


def _is_real(text: str) -> bool:
    if _WHOLE.match(text) is None and _REAL.match(text) is None:
        return False
    # So short a text, without a power of ten, is always kept.
    if len(text) <= _DIGITS and "e" not in text and "E" not in text:
        return True
    # As it would be written again, which says the same or not.
    return Decimal(repr(float(text))) == Decimal(text)


def _is_truth(text: str) -> bool:
    return text.lower() in _TRUTH


def _truth(text: str) -> bool:
    return _TRUTH[text.lower()]


_KINDS: tuple[tuple[str, Callable[[str], bool], Callable[[str], Any]], ...] = (
    ("integer", _is_whole, int),
    ("number", _is_real, float),
    ("boolean", _is_truth, _truth),
)
