"""Texts in quotes as people and models write them: other quotes, raw line breaks, odd escapes."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgate.tools.data.mending import Mender

# What opens a text, and what closes it.
QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d\u201c", "\u2018": "\u2019\u2018"}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_RUN = re.compile(r"[^\"'`\\\u201c\u201d\u2018\u2019\x00-\x1f]++")
_AFTER = re.compile(r"\s*+")
_HEX = re.compile(r"u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?+")
_ENDS = ("", ",", ":", "}", "]")


class Quoted:
    """One text, from its first quote on."""

    def __init__(self, mender: "Mender") -> None:
        self._mender = mender
        self._text = mender.text
        self._start = mender.at
        self._closing = QUOTES[mender.sign]

    def read(self) -> str:
        """What it says; the mender stands behind it."""
        mender = self._mender
        if self._closing != '"':
            mender.mend('a text was in other quotes than "')
        parts: list[str] = []
        at = self._start + 1
        while at < len(self._text):
            if run := _RUN.match(self._text, at):
                parts.append(run[0])
                at = run.end()
                continue
            sign = self._text[at]
            if sign in self._closing and self._closes(at):
                mender.at = at + 1
                return "".join(parts)
            if sign == "\\":
                part, at = self._escape(at + 1)
                parts.append(part)
                continue
            parts.append(self._odd(sign, at))
            at += 1
        mender.mend("a text was cut off; it ends where the input ends", self._start)
        mender.at = len(self._text)
        return "".join(parts)

    def _closes(self, at: int) -> bool:
        """A quote that is followed by what may follow a text; else it is a part of it."""
        found = _AFTER.match(self._text, at + 1)
        behind = at + 1 if found is None else found.end()
        follows = self._text[behind : behind + 1]
        if follows in _ENDS or self._text[behind : behind + 2] in ("//", "/*", "=>"):
            return True
        if behind > at + 1 and (
            follows in QUOTES or follows in "{[=#" or "\n" in self._text[at + 1 : behind]
        ):
            return True
        return follows == "="

    def _odd(self, sign: str, at: int) -> str:
        if sign < " ":
            what = "a line break" if sign in "\r\n" else "a control character"
            self._mender.mend(f"{what} stood in a text as it is", at)
            return "" if sign == "\0" else sign
        if sign in self._closing:
            self._mender.mend("a quote in a text was not escaped", at)
        return sign

    def _escape(self, at: int) -> tuple[str, int]:
        """What stands behind a backslash, and where the text goes on."""
        sign = self._text[at : at + 1]
        if sign in _ESCAPES and sign:
            return _ESCAPES[sign], at + 1
        if found := _HEX.match(self._text, at):
            return self._character(found)
        if sign in self._closing:
            return sign, at + 1
        self._mender.mend("a backslash stood before a character that needs none", at - 1)
        return ("\\" if sign.isalnum() or not sign else "") + ("" if sign < " " else sign), at + 1

    def _character(self, found: re.Match[str]) -> tuple[str, int]:
        first = int(found[1], 16)
        if 0xD800 <= first < 0xDC00 and found[2]:
            second = int(found[2], 16)
            return chr(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), found.end()
        end = found.start() + 5
        if 0xD800 <= first < 0xE000:
            self._mender.mend("half a character was replaced", found.start())
            return "\ufffd", end
        return chr(first), end
