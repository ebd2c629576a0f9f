"""Texts with places for arguments. A place becomes part of one word of a command, never two."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import orjson

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]{0,127})(\.\.\.)?\}")


class Place(msgspec.Struct, frozen=True):
    """Where an argument goes. `many`: a list, each item a word of its own."""

    name: str
    many: bool = False


class Template(msgspec.Struct, frozen=True):
    """A text, and the places in it."""

    pieces: tuple[str | Place, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments that it takes."""
        return tuple(piece.name for piece in self.pieces if isinstance(piece, Place))

    @property
    def literal(self) -> str | None:
        """The text, where there is no place in it."""
        return None if self.names else "".join(cast("tuple[str, ...]", self.pieces))

    @property
    def many(self) -> Place | None:
        """The place of a list, which is a word by itself."""
        first = self.pieces[0] if len(self.pieces) == 1 else None
        return first if isinstance(first, Place) and first.many else None

    @property
    def begins_with_place(self) -> bool:
        """Whether an argument says how the word begins."""
        return bool(self.pieces) and isinstance(self.pieces[0], Place)


class Absent(Exception):
    """An argument that is needed was not given."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Unfit(Exception):
    """An argument cannot stand where it should. It never holds the value, which may be secret."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name, self.reason = name, reason


def template(text: str) -> Template:
    """Read `{name}`, `{name...}` and, for a brace, `{{` and `}}`; `ValueError` for others."""
    if "\0" in text:
        raise ValueError("holds a NUL character, which no command can take")
    pieces: list[str | Place] = []
    plain, at = "", 0
    while at < len(text):
        char = text[at]
        place = _PLACE.match(text, at) if char == "{" and text[at + 1 : at + 2] != "{" else None
        if place is not None:
            pieces += [*([plain] if plain else []), Place(place[1], bool(place[2]))]
            plain, at = "", place.end()
            continue
        if char in "{}":
            if text[at + 1 : at + 2] != char:
                raise ValueError(
                    f"has a {char!r} that is no {{name}} of an argument; write {char * 2} for one"
                )
            at += 1
        plain, at = plain + char, at + 1
    found = Template((*pieces, *([plain] if plain else [])))
    if len(found.pieces) > 1 and any(isinstance(one, Place) and one.many for one in found.pieces):
        raise ValueError("has a {name...} beside other text; a list stands by itself")
    return found


def given(args: Mapping[str, Any], defaults: Mapping[str, Any], name: str) -> Any:
    """An argument, or what its schema says where there is none; `Absent` without either."""
    value = args.get(name, defaults.get(name))
    if value is None:
        raise Absent(name)
    return value


def word_of(name: str, value: Any) -> str:
    """An argument as a word, or `Unfit`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    raise Unfit(name, "has to be a text or a number to be a word of a command")


def items_of(name: str, value: Any) -> Sequence[str]:
    """A list as words, or `Unfit`."""
    if not isinstance(value, list):
        raise Unfit(name, "has to be a list of texts")
    return [word_of(name, item) for item in cast("list[Any]", value)]


def text_of(found: Template, args: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The whole text, with lists and objects as JSON: for what a program reads, not for words."""
    text = ""
    for piece in found.pieces:
        if isinstance(piece, str):
            text += piece
            continue
        value = given(args, defaults, piece.name)
        text += value if isinstance(value, str) else orjson.dumps(value).decode()
    return text
