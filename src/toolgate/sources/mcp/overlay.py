"""What an operator says about a server's tools: one file a server, checked whole."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, cast

from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.fields import FIELDS, kind
from toolgate.spec.problem import Problem
from toolgate.spec.reader import MAX_PROBLEMS
from toolgate.text.document import Text

# What a definition of a server cannot say, or is not believed about. What it takes and gives, and
# where it is, only the server knows.
TAKEN = tuple(
    field
    for field in FIELDS
    if field not in {"name", "version", "input_schema", "output_schema", "provider", "config"}
)
# What an error of the server means for a tool that is not pure.
ON_ERROR = "on_error"
_MEANINGS = ("unknown", "not_done")
_MOST_BYTES = 1_000_000
_STARS = frozenset("*?[")


class Entry(NamedTuple):
    """What is said about the tools of a name, or of a pattern; and the line it stands in."""

    pattern: str
    fields: Mapping[str, Any]
    line: int | None

    @property
    def is_pattern(self) -> bool:
        """Whether it may mean several."""
        return not _STARS.isdisjoint(self.pattern)


class Overlay(NamedTuple):
    """A file's entries, in its order."""

    file: str = ""
    entries: tuple[Entry, ...] = ()

    def about(self, tool: str) -> tuple[dict[str, Any], int | None]:
        """What is said about a tool of the server, and where last: patterns first, then its name.

        What stands further down wins.
        """
        found: dict[str, Any] = {}
        line: int | None = None
        for entry in sorted(self.entries, key=lambda one: not one.is_pattern):
            meant = fnmatchcase(tool, entry.pattern) if entry.is_pattern else tool == entry.pattern
            if meant:
                found |= entry.fields
                line = entry.line
        return found, line

    def unheard(self, tools: Mapping[str, Any]) -> list[str]:
        """Names in it that no tool has: a misspelt one would be believed to hold."""
        return [
            f"{_place(self.file, entry.line)}: the server has no tool {entry.pattern[:80]!r}"
            for entry in self.entries
            if not entry.is_pattern and entry.pattern not in tools
        ]


NOTHING = Overlay()


def read(path: Path, shown: str) -> Overlay:
    """The overlay in a file, or `InvalidSpecs` with all that is wrong in it."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _refused(shown, f"cannot be read ({error.strerror})", "Make it readable.") from None
    if len(raw) > _MOST_BYTES:
        raise _refused(shown, f"has more than {_MOST_BYTES:,} bytes", "Write less.")
    text = parse(raw, file=shown)
    problems: list[Problem] = []
    entries = tuple(_entries(text, shown, problems))
    if problems:
        raise InvalidSpecs(problems[:MAX_PROBLEMS])
    return Overlay(shown, entries)


def _entries(text: Text, file: str, problems: list[Problem]) -> Iterator[Entry]:
    document = text.value
    tools = cast("Any", document).get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, dict) or len(cast("Any", document)) != 1:
        problems.append(
            Problem(
                file=file,
                line=1,
                message="has another shape than an overlay",
                write="It has one key, tools, with the names of tools and what holds for each.",
            )
        )
        return
    for name, given in cast("dict[Any, Any]", tools).items():
        line = text.line_of(("tools", name))
        if not isinstance(name, str) or not isinstance(given, dict):
            problems.append(
                Problem(
                    file=file,
                    line=line,
                    tool=str(name)[:80],
                    message=f"is {kind(given)}, not an object",
                    write="Write for example read_file: {effect: pure}.",
                )
            )
            continue
        fields: dict[str, Any] = {}
        for field, value in cast("dict[Any, Any]", given).items():
            at = text.line_of(("tools", name, field))
            try:
                fields[str(field)] = _read(str(field), value)
            except ValueError as error:
                wrong, _, write = str(error).partition("\n")
                problems.append(
                    Problem(
                        file=file,
                        line=at,
                        tool=name[:80],
                        field=str(field)[:60],
                        message=wrong,
                        write=write,
                    )
                )
        yield Entry(name, fields, line)


def _read(field: str, value: Any) -> Any:
    if field == ON_ERROR:
        if value not in _MEANINGS:
            raise ValueError("is no meaning of an error\nWrite on_error: not_done, or unknown.")
        return value
    if field not in TAKEN:
        close = get_close_matches(field[:64], (*TAKEN, ON_ERROR), n=1)
        hint = f"Did you mean {close[0]}?" if close else f"It takes {', '.join(TAKEN)}, {ON_ERROR}."
        raise ValueError(f"is no field of an overlay\n{hint}")
    known = FIELDS[field]
    try:
        return known.read(value)
    except ValueError as error:
        # A reader of an object names the part: ".attempts is 0; …".
        raise ValueError(f"{error}\nWrite for example {known.example.removesuffix('.')}.") from None


def _place(file: str, line: int | None) -> str:
    return file if line is None else f"{file}:{line}"


def _refused(file: str, message: str, write: str) -> InvalidSpecs:
    return InvalidSpecs([Problem(file=file, message=message, write=write)])
