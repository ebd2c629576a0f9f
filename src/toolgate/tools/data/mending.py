"""JSON from text that is almost JSON, with what was mended and where.

It reads on from left to right and never goes back, so that it takes time in proportion to the text.
"""

import math
import re
from typing import Any

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.data.quoting import QUOTES, Quoted

DEEPEST = 100
_TOLD = 50
_SPACE = re.compile(r"(?:[\s\ufeff\u200b]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|\#[^\n]*+)")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]++|(?:[0-9][0-9_]*+)?(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?)"
    r"(?=[\s,}\]:/#]|\Z)"
)
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_NAME = re.compile(r"[^\s:=,{}\[\]\"'`]++(?:[ \t]++[^\s:=,{}\[\]\"'`/#]++)*+")
_BARE = re.compile(r"[^,}\]\n]++")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "None", "nil", "undefined"), None),
    **dict.fromkeys(("NaN", "nan", "Infinity", "-Infinity", "+Infinity", "inf", "-inf"), None),
}
_RIGHT = frozenset({"true", "false", "null"})


class Mend(msgspec.Struct, frozen=True):
    """What was not JSON, and where."""

    at: int
    what: str


class Mender:
    """One text, as far as it has been read."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at
        self.mends: list[Mend] = []
        self._objects = 0

    def value(self, depth: int = 0) -> Any:
        """The value that begins here."""
        if depth > DEEPEST:
            raise ToolError(f"The text is nested deeper than {DEEPEST} levels. Flatten it.")
        self.space()
        sign = self.sign
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._list(depth)
        if sign in QUOTES and sign:
            return self._quoted()
        if not sign:
            self.mend("a value is missing at the end")
            return None
        return self._number() if sign in "+-.0123456789" else self._bare()

    @property
    def sign(self) -> str:
        """The next character; nothing at the end."""
        return self.text[self.at : self.at + 1]

    def mend(self, what: str, at: int | None = None) -> None:
        """Told."""
        if len(self.mends) < _TOLD:
            self.mends.append(Mend(self.at if at is None else at, what))

    def space(self) -> None:
        """Behind white space, and comments."""
        while found := _SPACE.match(self.text, self.at):
            if not found[0][0].isspace() and found[0][0] not in "\ufeff\u200b":
                self.mend("a comment was left out")
            self.at = found.end()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        start = self.at
        self.at += 1
        self._objects += 1
        while not self._is_over("}", start, is_first=not found):
            at = self.at
            name = self._name()
            if name in found:
                self.mend(f"the name {name[:40]!r} is there twice; the last one counts", at)
            found[name] = self._field(depth)
        self._objects -= 1
        return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        start = self.at
        self.at += 1
        while not self._is_over("]", start, is_first=not found):
            at = self.at
            one = self.value(depth + 1)
            if self._objects and isinstance(one, str) and self._is_name():
                # The next field of the object around it.
                self.at = at
                self.mend("'[' was never closed; ']' was added", start)
                break
            found.append(one)
        return found

    def _is_name(self) -> bool:
        self.space()
        return self.sign == ":"

    def _is_over(self, closing: str, start: int, *, is_first: bool) -> bool:
        """Whether a bracket closes here; if not, the next part begins here."""
        commas = 0
        at = self.at
        while True:
            self.space()
            sign = self.sign
            if sign == ",":
                commas += 1
                at = self.at
                self.at += 1
                continue
            if self.text.startswith("...", self.at) or sign == "…":
                self.mend("an ellipsis was left out")
                self.at += 3 if sign == "." else 1
                continue
            if commas > (0 if is_first else 1) or (commas and sign in ("", "}", "]")):
                self.mend("a comma too many was left out", at)
            return self._closed(closing, start) or self._parted(commas, is_first=is_first)

    def _closed(self, closing: str, start: int) -> bool:
        sign = self.sign
        if sign == closing:
            self.at += 1
            return True
        if sign not in ("", "}", "]"):
            return False
        opened = self.text[start]
        self.mend(f"'{opened}' was never closed; '{closing}' was added", start)
        return True

    def _parted(self, commas: int, *, is_first: bool) -> bool:
        if not commas and not is_first:
            self.mend("a comma was missing")
        return False

    def _name(self) -> str:
        if self.sign in QUOTES:
            return self._quoted()
        found = _NAME.match(self.text, self.at)
        if found is None:
            self.mend("a name was missing")
            return ""
        self.mend("a name had no quotes")
        self.at = found.end()
        return found[0].strip()

    def _field(self, depth: int) -> Any:
        self.space()
        if self.sign == ":":
            self.at += 1
        elif self.sign == "=":
            self.mend("'=' stood where ':' belongs")
            self.at += 2 if self.text.startswith("=>", self.at) else 1
        else:
            self.mend("':' was missing")
        self.space()
        if self.sign in (",", "}", "]"):
            self.mend("a value was missing; it is null")
            # What is no part of this object ends it.
            return None
        return self.value(depth + 1)

    def _quoted(self) -> str:
        return Quoted(self).read()

    def _number(self) -> Any:
        found = _NUMBER.match(self.text, self.at)
        if found is None or not any(map(str.isdigit, found[0])):
            return self._bare()
        at, word = self.at, found[0]
        plain = word.replace("_", "").lstrip("+")
        digits = plain.lstrip("-")
        self.at = found.end()
        if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
            self.mend("a number began with zeros; it is a text, so that none is lost", at)
            return word
        if not _PLAIN.match(word):
            self.mend(f"the number {word[:20]} was written in another way", at)
        if digits[:2] in ("0x", "0X"):
            number: int | float = int(plain, 16)
        else:
            number = int(plain) if digits.isdigit() and len(digits) < 20 else float(plain)
        if digits.isdigit() and not -(1 << 63) <= number < 1 << 64:
            self.mend("a whole number was too large; it is a text", at)
            return word
        if not math.isfinite(number):
            self.mend("a number was too large; it is null", at)
            return None
        return number

    def _bare(self) -> Any:
        """A word, or a text without quotes."""
        at = self.at
        found = _BARE.match(self.text, at)
        if found is None:
            # A closing bracket or a comma where a value belongs.
            self.mend("a value was missing; it is null")
            return None
        word = re.split(r"//|/\*|#", found[0])[0]
        self.at = at + max(len(word), 1)
        word = word.strip()
        if word in _WORDS:
            if word not in _RIGHT:
                told = "null" if _WORDS[word] is None else str(_WORDS[word]).lower()
                self.mend(f"{word} became {told}", at)
            return _WORDS[word]
        if word.startswith(tuple("}])")):
            self.mend("a sign that belongs nowhere was left out", at)
            return None
        self.mend("a text had no quotes", at)
        return word
