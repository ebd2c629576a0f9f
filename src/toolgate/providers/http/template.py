"""Texts with `{names}` in them, which arguments stand for."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, cast

import orjson

_MARKS = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
# What stands for an argument that was not given; `None` is a value in a body.
MISSING: Any = object()


class Argument(NamedTuple):
    """An argument, or what stands at a place in it."""

    name: str
    below: tuple[str, ...] = ()

    def of(self, args: Mapping[str, Any]) -> Any:
        """Its value, or `MISSING`."""
        value = args.get(self.name, MISSING)
        for part in self.below:
            value = (
                cast("dict[str, Any]", value).get(part, MISSING)
                if isinstance(value, dict)
                else MISSING
            )
        return value


class Template(NamedTuple):
    """One text more than arguments: before, between and behind them."""

    texts: tuple[str, ...]
    arguments: tuple[Argument, ...]

    @property
    def whole(self) -> Argument | None:
        """The argument, where there is nothing beside it."""
        return self.arguments[0] if self.texts == ("", "") else None

    def text(self, args: Mapping[str, Any], encode: Callable[[str], str] = str) -> str | None:
        """The text, or `None` where an argument is not there."""
        pieces = [self.texts[0]]
        for argument, after in zip(self.arguments, self.texts[1:], strict=True):
            value = argument.of(args)
            if value is MISSING or value is None:
                return None
            pieces += (encode(shown(value)), after)
        return "".join(pieces)


def template(text: str, known: Collection[str] | None) -> Template:
    """Read a text; `known` are the names of the tool's arguments, where its schema says them.

    `{{` and `}}` stand for single braces. `{user.id}` looks into the argument `user`, unless one
    has that name as it is.
    """
    texts: list[str] = []
    arguments: list[Argument] = []
    begin, literal = 0, ""
    for mark in _MARKS.finditer(text):
        literal += text[begin : mark.start()]
        begin = mark.end()
        if mark[1] is not None:
            texts.append(literal)
            arguments.append(named(mark[1], known))
            literal = ""
        elif len(mark[0]) == 2:
            literal += mark[0][0]
        else:
            raise ValueError(f"has a single {mark[0]!r}; write {mark[0] * 2} for one that stays")
    return Template((*texts, literal + text[begin:]), tuple(arguments))


def named(name: str, known: Collection[str] | None) -> Argument:
    """The argument that a name in braces means."""
    if not name:
        raise ValueError("has {} without a name; write {NAME} of an argument")
    if known is None or name in known:
        return Argument(name)
    first, *below = name.split(".")
    if below and first in known:
        return Argument(first, tuple(below))
    listed = ", ".join(sorted(known)[:10]) or "none are declared"
    raise ValueError(f"names the argument {name[:60]!r}, which input_schema lacks; it has {listed}")


class Filling(NamedTuple):
    """A JSON value whose texts are templates. An entry whose argument is missing is left out."""

    value: Any
    arguments: tuple[Argument, ...]

    def of(self, args: Mapping[str, Any]) -> Any:
        """The value, filled, or `MISSING`."""
        return _filled(self.value, args)


def filling(value: Any, known: Collection[str] | None) -> Filling:
    """Read the templates in a JSON value."""
    read = _read(value, known)
    return Filling(read, tuple(_within(read)))


def _read(value: Any, known: Collection[str] | None) -> Any:
    if isinstance(value, str):
        found = template(value, known)
        return found if found.arguments else found.texts[0]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _read(of, known) for name, of in fields.items()}
    if isinstance(value, list):
        return [_read(of, known) for of in cast("list[Any]", value)]
    return value


def _within(value: Any) -> Iterator[Argument]:
    if isinstance(value, Template):
        yield from value.arguments
    elif isinstance(value, dict):
        for of in cast("dict[str, Any]", value).values():
            yield from _within(of)
    elif isinstance(value, list):
        for of in cast("list[Any]", value):
            yield from _within(of)


def _filled(value: Any, args: Mapping[str, Any]) -> Any:
    if isinstance(value, Template):
        whole = value.whole
        if whole is not None:
            # Alone it keeps its type: a number stays a number.
            return whole.of(args)
        text = value.text(args)
        return MISSING if text is None else text
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        filled = ((name, _filled(of, args)) for name, of in fields)
        return {name: of for name, of in filled if of is not MISSING}
    if isinstance(value, list):
        items = (_filled(of, args) for of in cast("list[Any]", value))
        return [of for of in items if of is not MISSING]
    return value


def shown(value: Any) -> str:
    """A value as a text: as it is, or as JSON writes it; a list of simple values with commas."""
    if type(value) is str:
        return value
    if isinstance(value, list) and not any(isinstance(one, (list, dict)) for one in value):  # pyright: ignore[reportUnknownVariableType]
        return ",".join(map(shown, cast("list[Any]", value)))
    return orjson.dumps(value).decode()
