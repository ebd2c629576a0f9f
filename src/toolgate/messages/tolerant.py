"""JSON as models write it: trailing commas, single quotes, Python's words. Never a guess.

What is not JSON is repaired by json-repair, and its reading counts only if it has the same words in
the same brackets as the text: a repair may mend punctuation, it may not add, drop or part a value.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from toolgate.spec.document import MAX_DEPTH, measure
from toolgate.spec.json_object import parse_object

# Repairing takes far longer than reading.
_MOST_REPAIRED = 64 * 1024
_WORD = re.compile(
    r"""\s+
    |(?P<double>"(?:[^"\\]|\\.)*")
    |(?P<single>'(?:[^'\\]|\\.)*')
    |(?P<open>[{\[])
    |(?P<close>[}\]])
    |(?P<mark>[:,])
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.+-])
    |(?P<word>true|false|null|True|False|None)(?!\w)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_CLOSES = {"{": "}", "[": "]"}
_INNER_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)"')
_STRAY = re.compile(r"\\(?:\\|')", re.DOTALL)
# Control characters that JSON wants escaped, and models do not escape.
_RAW = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
Token = tuple[str, Any]


class UnclearError(ValueError):
    """Where reading a text came to its end."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.at = at


def read_object(text: str) -> dict[str, Any]:
    """The object in this text, or a `ValueError` that says why it is not clear."""
    try:
        value = parse_object(text.encode())
        measure(value)
    except UnicodeEncodeError:
        raise ValueError("holds half a character") from None
    except RecursionError:
        raise ValueError("is nested far too deep") from None
    except ValueError as error:
        if not str(error).startswith("is not JSON"):
            raise
        return _repaired(text)
    return value


def object_end(text: str, start: int) -> int:
    """Behind the object that opens here; `UnclearError` where it has no clear end."""
    open_: list[str] = []
    at = start
    while True:
        found = _WORD.match(text, at)
        if found is None:
            raise UnclearError(_broken(text, at), at)
        at = found.end()
        if found.lastgroup == "open":
            open_.append(_CLOSES[found[0]])
            if len(open_) > MAX_DEPTH:
                raise UnclearError(f"is nested deeper than {MAX_DEPTH} levels", at)
        elif found.lastgroup == "close":
            if found[0] != open_.pop():
                raise UnclearError("closes a bracket that is not open", at)
            if not open_:
                return at


def _broken(text: str, at: int) -> str:
    if at >= len(text):
        return "is cut off before its last bracket"
    return f"cannot be read at {text[at : at + 20]!r}"


def _repaired(text: str) -> dict[str, Any]:
    from json_repair import repair_json  # noqa: PLC0415  a tenth of a start, for what is rare

    text = text.strip()
    if len(text) > _MOST_REPAIRED:
        raise ValueError(f"is not JSON, and too long to be repaired ({len(text):,} characters)")
    if not text.startswith("{") or object_end(text, 0) != len(text):
        raise ValueError("is not one JSON object")
    meant = list(_tokens(text))
    try:
        value: Any = repair_json(text, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON and cannot be repaired") from None
    if not isinstance(value, dict) or list(_said(cast("object", value))) != meant:
        raise ValueError("is not JSON, and a repair would change what it says")
    raw = json.dumps(value, allow_nan=False).encode()
    checked = parse_object(raw)
    measure(checked)
    return checked


def _tokens(text: str) -> Iterator[Token]:
    """The brackets and values of a text, in their order; punctuation is left out."""
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise ValueError(_broken(text, at))
        at = found.end()
        kind, word = found.lastgroup, found[0]
        if kind in {"open", "close"}:
            yield "bracket", word
        elif kind == "number":
            yield _value(json.loads(word))
        elif kind == "word":
            yield _value(_WORDS[word])
        elif kind in {"double", "single"}:
            yield "text", _unquoted(word)


def _unquoted(word: str) -> str:
    """What a quoted text says; a single-quoted one by the rules of Python, where they differ."""
    inside = word[1:-1]
    if word[0] == "'":
        # JSON knows no escaped apostrophe, and takes a double quote only with one.
        inside = _STRAY.sub(lambda found: "'" if found[0] == "\\'" else found[0], inside)
        inside = _INNER_QUOTE.sub(r'\1\\"', inside)
    for raw, escaped in _RAW.items():
        inside = inside.replace(raw, escaped)
    try:
        said = json.loads(f'"{inside}"')
    except ValueError:
        raise ValueError(f"holds a text that cannot be read: {word[:20]!r}") from None
    return cast("str", said)


def _said(value: object) -> Iterator[Token]:
    """The same of a value."""
    if isinstance(value, dict):
        yield "bracket", "{"
        for name, of in cast("dict[str, object]", value).items():
            yield "text", name
            yield from _said(of)
        yield "bracket", "}"
    elif isinstance(value, list):
        yield "bracket", "["
        for of in cast("list[object]", value):
            yield from _said(of)
        yield "bracket", "]"
    else:
        yield _value(value)


def _value(value: object) -> Token:
    # To Python 1, 1.0 and True are equal.
    return ("text", value) if isinstance(value, str) else (type(value).__name__, value)
