"""HTML as a row of tags and texts, in time by its length, whatever it holds.

The standard library's parser looks again and again for an end that is not there: some hundred
kilobytes of open quotes take it hours.
"""

import html
import re
from collections.abc import Iterator

import msgspec

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]{0,63}")
_ATTRIBUTE = re.compile(
    r"""([^\s"'>/=]{1,64})(?:\s{0,16}=\s{0,16}(?:"([^"]*)"|'([^']*)'|([^\s"'>]{1,1000})))?"""
)
# What is in these is no markup.
_RAW = frozenset({"script", "style", "textarea", "title", "noembed", "xmp"})
_LONGEST_TAG = 20_000


class Tag(msgspec.Struct, frozen=True):
    """`</p>` is closing; names are in small letters."""

    name: str
    is_closing: bool = False
    attributes: dict[str, str] = {}


class Markup:
    """A text being read. What was looked for once and is not there is not looked for again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def __iter__(self) -> Iterator[Tag | str]:
        text, at = self._text, 0
        while at < len(text):
            start = text.find("<", at)
            start = len(text) if start < 0 else start
            if start > at:
                yield html.unescape(text[at:start])
            if start >= len(text):
                return
            at = start + 1
            if text.startswith("!--", at):
                at = self._behind("-->", at + 3)
            elif text[at : at + 1] in {"!", "?"}:
                at = self._behind(">", at)
            elif name := _NAME.match(text, at + text.startswith("/", at)):
                end = self._end(name.end())
                tag = _tag(text, at, name, end)
                yield tag
                at = end
                if tag.name in _RAW and not tag.is_closing:
                    end = self._raw(tag.name, at)
                    yield html.unescape(text[at:end])
                    at = end
            else:
                yield "<"

    def _find(self, what: str, at: int) -> int:
        if what in self._missing:
            return -1
        found = self._text.find(what, at)
        if found < 0:
            self._missing.add(what)
        return found

    def _behind(self, what: str, at: int) -> int:
        found = self._find(what, at)
        return len(self._text) if found < 0 else found + len(what)

    def _end(self, at: int) -> int:
        """Behind the > of a tag, which may stand in quotes before."""
        limit = at + _LONGEST_TAG
        while at < limit:
            close = self._find(">", at)
            if close < 0:
                return len(self._text)
            quotes = [one for mark in "\"'" if (one := self._text.find(mark, at, close)) >= 0]
            if not quotes:
                return close + 1
            first = min(quotes)
            second = self._find(self._text[first], first + 1)
            if second < 0:
                return close + 1
            at = second + 1
        return at

    def _raw(self, name: str, at: int) -> int:
        """Where the element of that name ends; one that does not holds all that is left."""
        if name in self._missing:
            return len(self._text)
        found = re.compile(f"</{name}", re.IGNORECASE).search(self._text, at)
        if found is None:
            self._missing.add(name)
            return len(self._text)
        return found.start()


def _tag(text: str, at: int, name: re.Match[str], end: int) -> Tag:
    inner = text[name.end() : min(end, at + _LONGEST_TAG)]
    found: dict[str, str] = {}
    for one in _ATTRIBUTE.finditer(inner):
        value = next((part for part in one.groups()[1:] if part is not None), "")
        found.setdefault(one[1].lower(), html.unescape(value))
    return Tag(name[0].lower(), text.startswith("/", at), found)
