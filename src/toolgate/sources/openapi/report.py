"""What came of a document: its tools, what was left out, and what an operator has to know."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MAX_PLACES = 100_000


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that became no tool, and why."""

    operation: str
    reason: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as the document says, and everywhere that holds."""

    message: str
    where: Sequence[str]
    # Whether somebody has to look at it before the tools are used.
    grave: bool = False


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that tools name: the operator sets it, and says where it may be sent."""

    name: str
    about: str
    hosts: Sequence[str]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A document's tools as definitions in the native layout, in the order of the document."""

    title: str
    version: str
    # What the tools are listed under, and the secrets are called by.
    name: str
    # As many as the document has, chosen or not.
    operations: int
    # How many operations have each tag.
    tags: Mapping[str, int]
    tools: Sequence[dict[str, Any]]
    skipped: Sequence[Skipped]
    notes: Sequence[Note]
    secrets: Sequence[Secret]
    # What was to be chosen and is not there, a sentence each.
    unknown: Sequence[str] = ()


class Notes:
    """Collects what is to be told; the same said of many places is one note."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, bool], dict[str, None]] = {}

    def add(self, message: str, where: str, *, grave: bool = False) -> None:
        places = self._said.setdefault((message, grave), {})
        if len(places) < MAX_PLACES:
            places[where] = None

    def all(self) -> list[Note]:
        """Everything that was said: what is grave first, else in the order it came up."""
        found = [
            Note(message=message, where=list(where), grave=grave)
            for (message, grave), where in self._said.items()
        ]
        return sorted(found, key=lambda note: not note.grave)
