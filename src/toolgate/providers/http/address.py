"""Where a request goes: an address whose path has places for arguments, and nothing else has.

Scheme, host and port are as they were written. An argument is one encoded value of one segment, so
no argument leads out of the path that the template names. Many services decode what is encoded
before they look at the path: a slash in a value is refused, unless its place is `{NAME*}`.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from toolgate.net.errors import NotAllowed
from toolgate.net.location import Location, read
from toolgate.providers.http.style import Style, default, segment
from toolgate.providers.http.template import MISSING, Argument, named

_LITERAL = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*\Z")
_PLACE = re.compile(r"\{([^{}]*)\}")
_SLASH = re.compile(r"%2F|%5C|/", re.IGNORECASE)
_BETWEEN = re.compile(r"[/\\]")
# As it is sent, as it is read, and as it is read by whoever decodes twice, or once more.
_DECODED = 4
_DOTS = re.compile(r"(?:\.|%2e){1,2}\Z", re.IGNORECASE)


class Place(NamedTuple):
    """Where an argument stands in a segment, and how it is written there."""

    name: str
    argument: Argument
    style: Style
    # Whether its slashes are those of the path.
    is_deep: bool = False


Segment = tuple[str | Place, ...]


class Unfit(Exception):
    """An argument that cannot stand where it should."""

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(message)
        self.argument = argument


class Address(NamedTuple):
    """A path template behind a host. `prefix` is all before the first argument."""

    location: Location
    prefix: str
    segments: tuple[str | Segment, ...]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Those that stand in it."""
        parts = (part for one in self.segments if not isinstance(one, str) for part in one)
        return tuple(part.argument for part in parts if isinstance(part, Place))

    def filled(self, args: Mapping[str, Any]) -> str:
        """The address of one request, without a query; `Unfit` where an argument is not."""
        if not self.segments:
            return self.prefix
        parts = [one if isinstance(one, str) else _filled(one, args) for one in self.segments]
        address = self.prefix + "".join(parts)
        # Whatever becomes of the code above: nothing leaves the template's own beginning.
        if not address.startswith(self.prefix):
            raise Unfit("", "would lead elsewhere")
        return address


def location_of(url: str) -> Location:
    """Scheme, host and port of an address; `ValueError` says what is wrong with it."""
    try:
        return read(url)
    except NotAllowed as error:
        why = error.message.removeprefix("The address ").removesuffix(" Nothing was sent.")
        raise ValueError(f"{why.rstrip('.')}; write https://HOST/PATH") from None


def address(
    url: str, known: Collection[str] | None, placed: Mapping[str, tuple[Argument, Style]]
) -> Address:
    """Read an address without a query; `placed` are parameters that say how they are written."""
    location = location_of(url)
    path = url[url.index("://") + 3 :].partition("/")[2]
    segments: list[str | Segment] = []
    literal, prefix = f"{location.scheme}://{location.authority}/", ""
    for index, text in enumerate(path.split("/")):
        found = _segment(text, known, placed)
        literal += "/" if index else ""
        if isinstance(found, str):
            literal += found
            continue
        if not segments:
            prefix = literal
        else:
            segments.append(literal)
        segments.append(found)
        literal = ""
    if not segments:
        return Address(location, literal, ())
    return Address(location, prefix, (*segments, literal) if literal else tuple(segments))


def _segment(
    text: str, known: Collection[str] | None, placed: Mapping[str, tuple[Argument, Style]]
) -> str | Segment:
    parts: list[str | Place] = []
    begin = 0
    for mark in _PLACE.finditer(text):
        _literal(parts, text[begin : mark.start()])
        begin = mark.end()
        is_deep = mark[1].endswith("*") and mark[1] not in placed
        name = mark[1][:-1] if is_deep else mark[1]
        argument, style = placed.get(name) or (named(name, known), default("path"))
        parts.append(Place(name, argument, style, is_deep))
    _literal(parts, text[begin:])
    if any(isinstance(part, Place) for part in parts):
        return tuple(parts)
    if _DOTS.match(text):
        raise ValueError("has . or .. in its path; write the path without them")
    return text


def _literal(parts: list[str | Place], text: str) -> None:
    if not _LITERAL.match(text):
        raise ValueError(
            f"has {text[:60]!r} in its path, which is not encoded; write what is not a letter or "
            "digit as %XX, and arguments as {NAME}"
        )
    if text:
        parts.append(text)


def _filled(parts: Segment, args: Mapping[str, Any]) -> str:
    text, last = "", ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        value = part.argument.of(args)
        last = part.argument.name
        if value is MISSING or value is None:
            raise Unfit(last, "is needed for the address")
        text += _one(part, value)
    if not text:
        raise Unfit(last, "must not be empty: it is a part of the address")
    _refuse_dots(text, last)
    return text


def _one(place: Place, value: Any) -> str:
    text = segment(place.name, value, place.style)
    if not _SLASH.search(text):
        return text
    name = place.argument.name
    if not place.is_deep or "\\" in unquote(text):
        raise Unfit(name, "must not have / or \\ in it: it is a part of the address")
    text = _SLASH.sub("/", text)
    if "" in text.split("/"):
        raise Unfit(name, "must not have an empty part: it is a part of the address")
    return text


def _refuse_dots(text: str, argument: str) -> None:
    """Whoever reads it, decoded once or again, finds no way up in it."""
    for _ in range(_DECODED):
        if any(part.partition(";")[0] in {".", ".."} for part in _BETWEEN.split(text)):
            raise Unfit(argument, "must not be . or ..: it is a part of the address")
        text = unquote(text)
