"""What an operator says about a server's tools: one file a server, checked whole."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from toolgate.errors import InvalidSpecs
from toolgate.sources.overlay import MAX_BYTES, Entry, Unfit, as_definition, entries, known
from toolgate.spec.fields import FIELDS
from toolgate.spec.problem import Problem

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
_STARS = frozenset("*?[")


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
        for entry in sorted(self.entries, key=lambda one: not is_pattern(one)):
            if fits(entry, tool):
                found |= entry.fields
                line = entry.line
        return found, line


NOTHING = Overlay()


def is_pattern(entry: Entry) -> bool:
    """Whether it may mean several."""
    return not _STARS.isdisjoint(entry.pattern)


def fits(entry: Entry, tool: str) -> bool:
    """Whether it means this tool."""
    return fnmatchcase(tool, entry.pattern) if is_pattern(entry) else tool == entry.pattern


def read(path: Path, shown: str) -> Overlay:
    """The overlay in a file, or `InvalidSpecs` with all that is wrong in it."""
    try:
        with path.open("rb") as file:
            # No more than shows that it is too much.
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"cannot be read ({error.strerror})"
        problem = Problem(file=shown, message=message, write="Make it readable.")
        raise InvalidSpecs([problem]) from None
    example = "read_file: {effect: pure}"
    return Overlay(shown, entries(raw, file=shown, example=example, take=_read))


def _read(field: str, value: Any) -> Any:
    if field == ON_ERROR:
        if value not in _MEANINGS:
            raise Unfit("is no meaning of an error", "Write on_error: not_done, or unknown.")
        return value
    known(field, (*TAKEN, ON_ERROR))
    return as_definition(field, value)
