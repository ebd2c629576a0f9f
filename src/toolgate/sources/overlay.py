"""Overlays: an operator's word on tools that others define. Read whole; all that is wrong is told.

Which fields there are and which entry stands above another is for the source to say.
"""

from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.fields import FIELDS, kind
from toolgate.spec.problem import Problem
from toolgate.spec.reader import MAX_PROBLEMS
from toolgate.text.document import Text

MAX_BYTES = 1_000_000
# Reads a field; `Unfit` where it cannot.
Take = Callable[[str, Any], Any]


class Unfit(ValueError):
    """What is wrong with a field, and what to write."""

    def __init__(self, message: str, write: str) -> None:
        super().__init__(message)
        self.message = message
        self.write = write


class Entry(NamedTuple):
    """What is said about the tools of a name, or of a pattern; and the line it stands in."""

    pattern: str
    fields: dict[str, Any]
    line: int | None


def entries(raw: bytes, *, file: str, example: str, take: Take) -> tuple[Entry, ...]:
    """All of a file, in its order, or `InvalidSpecs`."""
    if len(raw) > MAX_BYTES:
        message = f"has more than {MAX_BYTES:,} bytes"
        raise InvalidSpecs([Problem(file=file, message=message, write="Write less.")])
    problems: list[Problem] = []
    found = tuple(_entries(parse(raw, file=file), file, example, take, problems))
    if problems:
        raise InvalidSpecs(problems[:MAX_PROBLEMS])
    return found


def known(field: str, fields: Collection[str]) -> None:
    """`Unfit` with the nearest one, where a field is none of these."""
    if field not in fields:
        close = get_close_matches(field[:64], fields, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"It takes {', '.join(fields)}."
        raise Unfit("is no field of an overlay", hint)


def as_definition(field: str, value: Any) -> Any:
    """A field as a definition has it; `Unfit` says it in the same words."""
    try:
        return FIELDS[field].read(value)
    except ValueError as error:
        example = FIELDS[field].example.removesuffix(".")
        raise Unfit(str(error), f"Write for example {example}.") from None


def _entries(
    text: Text, file: str, example: str, take: Take, problems: list[Problem]
) -> Iterator[Entry]:
    document = text.value
    tools = cast("Any", document).get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, dict) or len(cast("Any", document)) != 1:
        write = "It has one key, tools, with the names of tools and what holds for each."
        told = "has another shape than an overlay"
        problems.append(Problem(file=file, line=1, message=told, write=write))
        return
    for name, given in cast("dict[Any, Any]", tools).items():
        line = text.line_of(("tools", name))
        if not isinstance(name, str) or not isinstance(given, dict):
            problems.append(
                Problem(
                    file=file,
                    line=line,
                    tool=_plain(name, 80),
                    message=f"is {kind(given)}, not an object",
                    write=f"Write for example {example}.",
                )
            )
            continue
        fields: dict[str, Any] = {}
        for field, value in cast("dict[Any, Any]", given).items():
            try:
                fields[str(field)] = take(str(field), value)
            except Unfit as problem:
                # A reader of an object names the part: ".attempts is 0; …".
                inner, _, rest = problem.message.partition(" ")
                is_inner = inner.startswith(".")
                problems.append(
                    Problem(
                        file=file,
                        line=text.line_of(("tools", name, field)),
                        tool=_plain(name, 80),
                        field=_plain(field, 60) + (inner if is_inner else ""),
                        message=rest if is_inner else problem.message,
                        write=problem.write,
                    )
                )
        yield Entry(name, fields, line)


def _plain(given: Any, most: int) -> str:
    """A name from a file goes to terminals: nothing in it may steer them."""
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in str(given)[:most])
    return shown[:most]
