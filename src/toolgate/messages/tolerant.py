"""JSON as models write it: trailing commas, single quotes, Python's words. Never a guess.

What is not JSON is read word by word, by JSON's grammar with few liberties: texts in single quotes
and with raw line breaks, Python's words, a comma before a closing bracket, and none between two
fields that white space parts. All of it takes time in proportion to the text: no pattern goes back
over what it has read.
"""

import json
import math
import re
from typing import Any, cast

from toolgate.spec.document import MAX_DEPTH, MAX_NODES, measure
from toolgate.spec.json_object import parse_object

_WORD = re.compile(
    r"""[ \t\r\n]*+(?:
    (?P<double>"(?:[^"\\]++|\\.)*+")
    |(?P<single>'(?:[^'\\]++|\\.)*+')
    |(?P<open>[{\[])
    |(?P<close>[}\]])
    |(?P<comma>,)
    |(?P<colon>:)
    |(?P<number>-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)(?![\w.+-])
    |(?P<word>true|false|null|True|False|None)(?!\w))""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"[ \t\r\n]*+")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_TEXTS = frozenset({"double", "single"})
_VALUES = _TEXTS | {"open", "number", "word"}
_CLOSES = {"{": "}", "[": "]"}
# With raw line breaks and tabs in its texts. Of other control characters nobody can tell that they
# were meant.
_LENIENT = json.JSONDecoder(strict=False)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# What may come next: a field of an object or a value of a list; the rest of a field; a comma.
_ENTRY, _COLON, _VALUE, _COMMA = range(4)
_SHOWN = 20
_LONGEST_WHOLE = len(str(-(1 << 63)))


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
        return _Tree(text).read()
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
            open_.append(_CLOSES[found["open"]])
            if len(open_) > MAX_DEPTH:
                raise _too_deep(at)
        elif found.lastgroup == "close":
            if found["close"] != open_.pop():
                raise UnclearError("closes a bracket that is not open", at)
            if not open_:
                return at


class _Tree:
    """An object as far as it has been read."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The brackets that are open, the innermost at the end.
        self._open: list[dict[str, Any] | list[Any]] = []
        self._wants = _ENTRY
        self._name = ""
        self._values = 1

    def read(self) -> dict[str, Any]:
        start = _behind_space(self._text, 0)
        if not self._text.startswith("{", start):
            raise ValueError("is not one JSON object")
        whole: dict[str, Any] = {}
        self._open.append(whole)
        at = start + 1
        while self._open:
            found = _WORD.match(self._text, at)
            if found is None:
                raise UnclearError(_broken(self._text, at), at)
            self._take(found, at)
            at = found.end()
        if _behind_space(self._text, at) != len(self._text):
            raise ValueError("is not one JSON object")
        return whole

    def _take(self, found: re.Match[str], at: int) -> None:
        """One more word, which has to be one that may come here."""
        kind, wants, into = cast("str", found.lastgroup), self._wants, self._open[-1]
        if kind == "comma" and wants == _COMMA:
            self._wants = _ENTRY
        elif kind == "colon" and wants == _COLON:
            self._wants = _VALUE
        elif kind in _VALUES and (wants == _VALUE or (wants == _ENTRY and type(into) is list)):
            self._add(kind, found[kind], at)
        elif kind in _TEXTS and type(into) is dict and self._begins_a_field(found, kind, at):
            self._name = name = _unquoted(found[kind], at)
            if name in into:
                told = f"has an object with the name {name[:_SHOWN]!r} twice; keep one"
                raise UnclearError(told, at)
            self._wants = _COLON
        elif kind == "close" and wants in {_COMMA, _ENTRY}:
            if found["close"] != _closing(into):
                raise UnclearError("closes a bracket that is not open", at)
            self._open.pop()
            self._wants = _COMMA
        else:
            raise UnclearError(self._needs(at), at)

    def _begins_a_field(self, found: re.Match[str], kind: str, at: int) -> bool:
        # Texts that touch, and those of a list that no comma parts, may be meant as one.
        return self._wants == _ENTRY or (self._wants == _COMMA and found.start(kind) > at)

    def _add(self, kind: str, word: str, at: int) -> None:
        self._values += 1
        if self._values > MAX_NODES:
            raise UnclearError(f"has more than {MAX_NODES:,} values", at)
        if len(self._open) >= MAX_DEPTH:
            raise _too_deep(at)
        value = _value(kind, word, at)
        into = self._open[-1]
        if isinstance(into, dict):
            into[self._name] = value
        else:
            into.append(value)
        if kind == "open":
            self._open.append(value)
            self._wants = _ENTRY
        else:
            self._wants = _COMMA

    def _needs(self, at: int) -> str:
        into = self._open[-1]
        if self._wants == _COLON:
            what = "a ':'"
        elif self._wants == _COMMA:
            what = f"a ',' or a '{_closing(into)}'"
        elif self._wants == _ENTRY and isinstance(into, dict):
            what = "a name in quotes"
        else:
            what = "a value"
        return f"needs {what} at {_shown(self._text, at)}"


def _value(kind: str, word: str, at: int) -> Any:
    if kind == "open":
        empty: dict[str, Any] | list[Any] = {} if word == "{" else []
        return empty
    if kind == "word":
        return _WORDS[word]
    return _number(word, at) if kind == "number" else _unquoted(word, at)


def _number(word: str, at: int) -> int | float:
    if not word.lstrip("-").isdigit():
        number = float(word)
        if not math.isfinite(number):
            raise UnclearError(f"holds the number {word[:_SHOWN]}, which is beyond all bounds", at)
        return number
    if len(word) > _LONGEST_WHOLE or not -(1 << 63) <= int(word) < 1 << 64:
        raise UnclearError("holds a whole number beyond 64 bits; send it as a text", at)
    return int(word)


def _unquoted(word: str, at: int) -> str:
    """What a quoted text says; a single-quoted one by the rules of Python, where they differ."""
    plain = _CONTROL.search(word) is None
    if plain and "\\" not in word:
        return word[1:-1]
    told = f"holds a text that cannot be read: {word[:_SHOWN]!r}"
    if not plain:
        raise UnclearError(told, at)
    if word[0] == "'":
        # JSON knows no escaped apostrophe, and takes a double quote only with one. Escaped
        # backslashes are put aside, as a character that is not in the text.
        inside = word[1:-1].replace("\\\\", "\0").replace("\\'", "'")
        if "\\/" in inside:
            # A stroke in JSON, and two characters in Python.
            raise UnclearError(told, at)
        inside = inside.replace('\\"', '"').replace('"', '\\"').replace("\0", "\\\\")
        word = f'"{inside}"'
    try:
        said = cast("str", _LENIENT.decode(word))
        said.encode()
    except ValueError:
        raise UnclearError(told, at) from None
    return said


def _closing(opened: object) -> str:
    return "}" if isinstance(opened, dict) else "]"


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _broken(text: str, at: int) -> str:
    if _behind_space(text, at) >= len(text):
        return "is cut off before its last bracket"
    return f"cannot be read at {_shown(text, at)}"


def _shown(text: str, at: int) -> str:
    at = _behind_space(text, at)
    return repr(text[at : at + _SHOWN])


def _too_deep(at: int) -> UnclearError:
    return UnclearError(f"is nested deeper than {MAX_DEPTH} levels", at)
