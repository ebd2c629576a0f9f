"""What other servers say of their resources and prompts, as far as clients are shown it.

It is for a model's context, like a tool's definition, and nobody has agreed to it: words that look
like orders, or that nobody sees, are withheld. What they stood for can still be had.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from toolgate.server.mcp.label import disclaimed
from toolgate.upstreams.suspicion import shown, suspicions, visible
from toolgate.upstreams.upstream import Json, Kind

WITHHELD = "What its server says of it is withheld: it looks like orders to a model."
# By what it is asked for, or shown: without it there is nothing to show.
_NAMES: Mapping[Kind, tuple[str, ...]] = {
    Kind.RESOURCES: ("uri", "name"),
    Kind.TEMPLATES: ("uriTemplate", "name"),
    Kind.PROMPTS: ("name",),
}
_ADDRESSES = frozenset({"uri", "uriTemplate"})
_WORDS = ("title", "description")
# Of one list; what comes after so many is shown without its words.
MOST_LETTERS = 1_000_000


class Looked(NamedTuple):
    """What can be shown, and what was found in the rest, for an operator."""

    shown: tuple[Json, ...]
    found: tuple[str, ...]


def letters(listed: Sequence[Json]) -> int:
    """How much there is to look at."""
    return sum(len(text) for one in listed for text in _texts(one))


def looked(kind: Kind, listed: Sequence[Json]) -> Looked:
    """A list without what nobody should take for the house's own word."""
    found: list[str] = []
    kept: list[Json] = []
    left = MOST_LETTERS
    for one in listed:
        left -= sum(map(len, _texts(one)))
        name = shown(str(one.get("name", "")))
        wrong = _unnamed(kind, one)
        if wrong:
            found.append(f"{name}: {wrong}")
        else:
            kept.append(disclaimed(_told(one, name, found, is_much=left < 0)))
    return Looked(tuple(kept), tuple(found))


def _unnamed(kind: Kind, one: Json) -> str:
    """Why it cannot be shown at all."""
    for field in _NAMES[kind]:
        value = one.get(field)
        if type(value) is not str:
            continue
        if field in _ADDRESSES:
            if visible(value) != value:
                return f"its {field}: characters that nobody sees"
        elif wrong := suspicions({"name": value}):
            return wrong[0]
    for each in _arguments(one):
        if wrong := suspicions({"name": each.get("name")}):
            return wrong[0]
    return ""


def _told(one: Json, name: str, found: list[str], *, is_much: bool) -> Json:
    told = _worded(one, name, found, is_much=is_much)
    if not (given := _arguments(one)):
        return told
    after = [_worded(each, name, found, is_much=is_much) for each in given]
    is_same = all(one is other for one, other in zip(given, after, strict=True))
    return told if is_same else told | {"arguments": after}


def _worded(one: Json, name: str, found: list[str], *, is_much: bool) -> Json:
    words = {field: one[field] for field in _WORDS if field in one}
    if not words:
        return one
    bare = {field: value for field, value in one.items() if field not in words}
    if is_much:
        return bare
    wrong = suspicions(words)
    found += [f"{name}: {each}" for each in wrong]
    return bare | {"description": WITHHELD} if wrong else one


def _arguments(one: Json) -> list[Json]:
    given = one.get("arguments")
    listed = cast("list[Any]", given) if type(given) is list else []
    return [cast("Json", each) for each in listed if type(each) is dict]


def _texts(one: Json) -> Iterator[str]:
    for field in ("name", *_WORDS):
        value = one.get(field)
        if type(value) is str:
            yield value
    for each in _arguments(one):
        yield from _texts(each)
