"""What stands in a query, in headers or in cookies: a name, and where its value comes from."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote_plus

from toolgate.providers.http import read
from toolgate.providers.http.address import Unfit
from toolgate.providers.http.style import STYLES, Pairs, Style, default, line, pairs
from toolgate.providers.http.template import MISSING, Argument, Template, named, shown, template

_BREAKS = re.compile(r"[^\t\x20-\x7e]")
# What a cookie may hold as it is; a percent sign not, or nobody could tell what was encoded.
_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_MOST = 200
Reserved = frozenset[str]


class Entry(NamedTuple):
    """One of them. `source` is a text with arguments in it, or one argument as it is."""

    name: str
    source: Template | Argument
    style: Style

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Those it is made from."""
        return self.source.arguments if isinstance(self.source, Template) else (self.source,)

    def value(self, args: Mapping[str, Any]) -> Any:
        """What to write, or `MISSING`."""
        if isinstance(self.source, Argument):
            value = self.source.of(args)
            return MISSING if value is None else value
        text = self.source.text(args)
        return MISSING if text is None else text


def entries(value: Any, place: str, known: Collection[str] | None) -> list[Entry]:
    """Read `query`, `headers` or `cookies`: names with texts, numbers or lists."""
    found: list[Entry] = []
    for name, given in read.fields(value).items():
        found.append(read.at(f".{name[:60]}", lambda: _entry(name, given, place, known)))  # noqa: B023  at once
    return found


def in_address(query: str, known: Collection[str] | None) -> list[Entry]:
    """What an address has behind its question mark."""
    parts = (part.partition("=") for part in query.split("&") if part)
    return [_entry(unquote_plus(name), unquote_plus(of), "query", known) for name, _, of in parts]


def parameter(value: Any, known: Collection[str] | None) -> tuple[str, Entry]:
    """Read one of `parameters`: its place, and what stands there."""
    given = read.only(
        value,
        {
            "name": read.text,
            "in": read.word(*STYLES),
            "argument": read.text,
            "style": read.text,
            "explode": read.flag,
        },
    )
    if not given.get("name") or "in" not in given:
        raise ValueError("needs name and in; write {name: id, in: query, argument: id}")
    place, name = given["in"], given["name"]
    usual = default(place)
    style = given.get("style", usual.name)
    read.at(".style", lambda: read.word(*STYLES[place])(style))
    read.at(".name", lambda: _named(name, place))
    argument = read.at(".argument", lambda: named(given.get("argument", name), known))
    explode = given.get("explode", style in {"form", "deepObject"})
    return place, Entry(name, argument, Style(style, explode))


def _entry(name: str, given: Any, place: str, known: Collection[str] | None) -> Entry:
    _named(name, place)
    style = default(place)
    if isinstance(given, list):
        given = ",".join(_literal(one) for one in read.listed(cast("list[Any]", given), _MOST))
    if isinstance(given, str):
        found = template(given, known)
        if place != "query" and any(map(_BREAKS.search, found.texts)):
            raise ValueError("has a line's end or a letter outside of ASCII; write plain text")
        return Entry(name, found.whole or found, style)
    return Entry(name, Template((_literal(given),), ()), style)


def _literal(value: Any) -> str:
    if not isinstance(value, (str, int, float)):
        raise ValueError("holds what is no text; write a text, such as '{NAME}'")
    return shown(value)


def _named(name: str, place: str) -> None:
    if place == "header":
        read.header_name(name)
    elif place == "cookie":
        read.token(name)
    elif not name:
        raise ValueError("has an entry without a name")


def query_pairs(given: Collection[Entry], args: Mapping[str, Any], reserved: Reserved) -> Pairs:
    """The query's part of these, encoded; what has no argument is left out."""
    found: Pairs = []
    for entry in given:
        value = entry.value(args)
        if value is MISSING:
            continue
        _check_names(entry, value, reserved)
        found += pairs(entry.name, value, entry.style)
    return found


def cookie_pairs(given: Collection[Entry], args: Mapping[str, Any], reserved: Reserved) -> Pairs:
    """The same of cookies."""
    found: Pairs = []
    for entry in given:
        value = entry.value(args)
        if value is MISSING:
            continue
        _check_names(entry, value, reserved)
        try:
            found += pairs(entry.name, value, entry.style, _cookie)
        except _Breaks:
            raise _unfit(entry, "a cookie") from None
    return found


def header_line(entry: Entry, args: Mapping[str, Any]) -> str | None:
    """A header's value, or `None` where it is left out."""
    value = entry.value(args)
    if value is MISSING:
        return None
    text = line(value, entry.style)
    if _BREAKS.search(text):
        raise _unfit(entry, "a header")
    return text.strip()


def _check_names(entry: Entry, value: Any, reserved: Reserved) -> None:
    """An object whose fields stand by themselves must not bring what the tool sets."""
    if type(value) is dict and entry.style.explode and entry.style.name == "form":
        for name in cast("dict[str, Any]", value):
            if name.lower() in reserved:
                first = entry.arguments[0].name
                raise Unfit(first, f"must not hold {name[:60]!r}: the tool itself sets that")


def _unfit(entry: Entry, where: str) -> Unfit:
    names = entry.arguments
    return Unfit(
        names[0].name if names else "",
        f"must be plain text on one line: it goes into {where}",
    )


def _cookie(text: str) -> str:
    if _BREAKS.search(text):
        raise _Breaks
    return quote(text, safe=_COOKIE)


class _Breaks(Exception):
    """A text that would end the line it stands on."""
