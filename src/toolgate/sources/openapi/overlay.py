"""The operator's word on a document's tools: their fields, their arguments, how answers are read.

What a tool is called and where it goes stays the document's part.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, cast

from toolgate.sources import overlay
from toolgate.sources.overlay import Entry, Unfit
from toolgate.spec import fields as spec_fields
from toolgate.spec.fields import FIELDS

NOT_OVERLAID = frozenset({"provider", "config", "input_schema", "output_schema", "name"})
ARGUMENTS = "arguments"
RESPONSE = "response"
DROP = "drop"
TAKEN = (*(field for field in FIELDS if field not in NOT_OVERLAID), ARGUMENTS, RESPONSE)
_EXAMPLE = "listPets: {effect: pure}"
_ARGUMENT = f"{ARGUMENTS}: {{token: {DROP}}}, or {ARGUMENTS}: {{token: {{secret: NAME}}}}"
_ANSWER = f"{RESPONSE}: {{error: error}}"


class Word(NamedTuple):
    """What is said about one tool."""

    fields: Mapping[str, Any]
    # The secret that each is bound to; of one that is only dropped, nothing.
    arguments: Mapping[str, str]
    response: Mapping[str, str]
    # Of the entry that was taken last.
    line: int | None = None


class Overlay:
    """All of it, by name or glob; what comes later stands above."""

    def __init__(self, entries: Sequence[Entry] = (), *, file: str = "") -> None:
        self.file = file
        self._entries = entries
        self._used: set[str] = set()
        self._bound: set[str] = set()

    def of(self, name: str) -> Word:
        """What is said about this tool."""
        found: dict[str, Any] = {}
        inside: dict[str, dict[str, str]] = {ARGUMENTS: {}, RESPONSE: {}}
        line: int | None = None
        for entry in self._entries:
            if not fnmatchcase(name, entry.pattern):
                continue
            self._used.add(entry.pattern)
            line = entry.line
            for field, value in entry.fields.items():
                if field in inside:
                    inside[field] |= value
                else:
                    found[field] = value
        return Word(found, inside[ARGUMENTS], inside[RESPONSE], line)

    def bound(self, argument: str) -> None:
        """Some tool has this argument."""
        self._bound.add(argument)

    def unused(self) -> list[tuple[str, str]]:
        """What of it fits nothing, each with where it stands."""
        found = [
            ("the overlay names a tool that there is none of", entry.pattern)
            for entry in self._entries
            if entry.pattern not in self._used
        ]
        return found + [
            ("the overlay names an argument that none of these tools has", f"{entry.pattern}.{one}")
            for entry in self._entries
            for one in entry.fields.get(ARGUMENTS, ())
            if entry.pattern in self._used and one not in self._bound
        ]


NOTHING = Overlay()


def read(raw: bytes, *, file: str) -> Overlay:
    """The overlay in a file, or `InvalidSpecs` with all that is wrong in it."""
    return Overlay(overlay.entries(raw, file=file, example=_EXAMPLE, take=_take), file=file)


def _take(field: str, value: Any) -> Any:
    """A field as it is written: it goes into a tool file."""
    overlay.known(field, TAKEN)
    if field == ARGUMENTS:
        return _checked(lambda: _arguments(value), _ARGUMENT)
    if field == RESPONSE:
        text = spec_fields.text(256)
        return _checked(lambda: spec_fields.only(value, {"error": text, "path": text}), _ANSWER)
    overlay.as_definition(field, value)
    return value


def _checked(read: Any, example: str) -> Any:
    try:
        return read()
    except ValueError as error:
        raise Unfit(str(error), f"Write for example {example}.") from None


def _arguments(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, given in spec_fields.fields_of(value).items():
        if given == DROP:
            found[name] = ""
            continue
        secret = cast("Any", given).get("secret") if isinstance(given, dict) else None
        if not isinstance(secret, str) or not secret or len(cast("Any", given)) != 1:
            raise ValueError(f".{name[:60]} is neither {DROP} nor {{secret: NAME}}")
        found[name] = spec_fields.text(80)(secret)
    return found
