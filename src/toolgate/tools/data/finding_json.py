"""Where the JSON is in a text: in a code fence, in prose, or all of it."""

import json
import re
from typing import Any

import orjson

from toolgate.errors import ToolError
from toolgate.text import json_text
from toolgate.text.refusal import Refusal
from toolgate.tools.data.given import read
from toolgate.tools.data.mending import Mend, Mender

_FENCE = re.compile(r"```[a-zA-Z0-9]*[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL)
_LONG_NUMBER = re.compile(r"[0-9]{19}")
_BEGINS = re.compile(
    r"""\{(?=\s*+["'}\w/\u201c`]|\s*+\Z)|\[(?=\s*+["'\[\]{\w/.+\u201c`-]|\s*+\Z)"""
)
_SCALAR = re.compile(
    r"""\s*+(?:["'\u201c]|[-+]?[0-9.]|(?:true|false|null|None|True|False|NaN)\b)"""
)
_BETWEEN = re.compile(r"[\s,;]*+")
_VALUES = 10_000
_TOLD = 20


def parsed(*, text: str, strict: bool) -> dict[str, Any]:
    """The value, whether the text was JSON, and what was mended."""
    # Half a character stands for nothing, and cannot be sent on.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if strict:
        return {"value": _strictly(text), "valid": True, "mended": []}
    if not _LONG_NUMBER.search(text):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            lost = [_told(text, one) for one in _twice(text)]
            return {"value": value, "valid": not lost, "mended": lost}
    value, mends = _mended(text)
    return {"value": value, "valid": not mends, "mended": [_told(text, one) for one in mends]}


def _twice(text: str) -> list[Mend]:
    """Names that an object has more than once: all values but the last are lost."""
    names: dict[str, None] = {}

    def pairs(given: list[tuple[str, Any]]) -> None:
        if len(given) > 1:
            seen: set[str] = set()
            names.update(dict.fromkeys(name for name, _ in given if name in seen or seen.add(name)))

    try:
        json.loads(text, object_pairs_hook=pairs, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return []
    return [
        Mend(
            max(text.rfind(orjson.dumps(name).decode()), 0),
            f"an object has {name[:80]!r} more than once; its last value was taken",
        )
        for name in list(names)[:_TOLD]
    ]


def _strictly(text: str) -> Any:
    read(text, "read it without strict")
    try:
        return json_text.read(text)
    except Refusal as refusal:
        where = f" at line {refusal.line}" if refusal.line else ""
        raise ToolError(f"The text {refusal.message}{where}. {refusal.write}") from None


def _mended(text: str) -> tuple[Any, list[Mend]]:
    start, end, mends = _inside(text)
    found: list[tuple[Any, int]] = []
    at = start
    piece = text[:end]
    is_prose = False
    while len(found) < _VALUES and (begin := _begin(piece, at, is_first=not found)) is not None:
        if not found and piece[start:begin].strip("\ufeff \t\r\n"):
            mends.append(Mend(start, "the text before the JSON was left out"))
        if found and not _BETWEEN.fullmatch(piece, at, begin):
            is_prose = True
        mender = Mender(piece, begin)
        value = mender.value()
        mends += mender.mends
        found.append((value, mender.at - begin))
        at = max(mender.at, begin + 1)
    if not found:
        raise ToolError(
            "There is no JSON in the text: nothing in it begins with { or [. Ask for it again."
        )
    if piece[at:].strip():
        mends.append(Mend(at, "the text behind the JSON was left out"))
    return _one(found, start, mends, is_prose=is_prose), mends


def _one(found: list[tuple[Any, int]], at: int, mends: list[Mend], *, is_prose: bool) -> Any:
    if len(found) == 1:
        return found[0][0]
    if is_prose:
        mends.append(Mend(at, f"the longest of {len(found)} values was taken"))
        return max(found, key=lambda one: one[1])[0]
    mends.append(Mend(at, f"{len(found)} values stood one after the other; they are a list"))
    return [value for value, _length in found]


def _inside(text: str) -> tuple[int, int, list[Mend]]:
    """A code fence's inside, where there is one before any bracket."""
    fence = _FENCE.search(text)
    bracket = _BEGINS.search(text)
    if fence is None or (bracket is not None and bracket.start() < fence.start()):
        return 0, len(text), []
    return fence.start(1), fence.end(1), [Mend(fence.start(), "the code fence was left out")]


def _begin(text: str, at: int, *, is_first: bool) -> int | None:
    if is_first and _SCALAR.match(text, at):
        return at
    found = _BEGINS.search(text, at)
    return None if found is None else found.start()


def _told(text: str, mend: Mend) -> dict[str, Any]:
    line = text.count("\n", 0, mend.at) + 1
    column = mend.at - (text.rfind("\n", 0, mend.at) + 1) + 1
    return {"line": line, "column": column, "what": mend.what}
