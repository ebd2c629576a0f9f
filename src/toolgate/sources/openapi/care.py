"""How carefully a tool is handled: by its method, by the document's word, by the operator's."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from toolgate.sources.openapi.operations import Operation
from toolgate.sources.openapi.prose import printable
from toolgate.sources.openapi.report import Notes
from toolgate.spec.effect import Effect
from toolgate.spec.fields import FIELDS

EXTENSION = "x-toolgate"
_PURE = frozenset({"get", "head", "options"})
_REPEATABLE = frozenset({"put", "delete"})
# What a tool is and where it goes is the document's part.
_NOT_OVERLAID = frozenset({"provider", "config", "input_schema", "output_schema", "name"})
_CAREFUL = frozenset({"destructive", "requires_confirmation", "requires_approval"})
# What a foreign document may say beside `effect`: none of it makes a call easier.
_HARMLESS = _CAREFUL | {
    "confirmation_prompt", "display_name", "description", "category", "categories", "tags",
}  # fmt: skip
Fields = Mapping[str, Any]


class Unfit(Exception):
    """An overlay that is none."""


def by_method(operation: Operation) -> dict[str, Any]:
    """What a method promises."""
    if operation.method in _PURE:
        return {"effect": "pure"}
    if operation.method in _REPEATABLE:
        deletes = {"destructive": True} if operation.method == "delete" else {}
        return {"effect": "idempotent"} | deletes
    return {"effect": "irreversible"}


def by_document(operation: Operation, usual: Fields, notes: Notes, *, own: bool) -> dict[str, Any]:
    """What the document says about it; `own`: it is the operator's, who may also lower the care."""
    given = operation.fields.get(EXTENSION)
    if not isinstance(given, dict):
        return {}
    found: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", given).items():
        if key not in FIELDS or key in _NOT_OVERLAID:
            notes.add(f"{EXTENSION}.{printable(key, 40)} is not taken", operation.shown)
        elif not own and _is_weaker(key, value, usual):
            told = f"{EXTENSION}.{key} asks for less care than the method; not taken"
            notes.add(told, operation.shown)
        else:
            if _is_weaker(key, value, usual):
                told = f"{EXTENSION}.{key} asks for less care than the method; taken, look at it"
                notes.add(told, operation.shown)
            found[key] = value
    return found


class Overlay:
    """The operator's word on tools, by name or glob; what comes later stands above."""

    def __init__(self, given: Mapping[str, Fields]) -> None:
        self._given = given
        self._used: set[str] = set()

    def of(self, name: str) -> dict[str, Any]:
        """The fields for this tool."""
        found: dict[str, Any] = {}
        for glob, fields in self._given.items():
            if fnmatchcase(name, glob):
                self._used.add(glob)
                found |= fields
        return found

    def unused(self) -> Sequence[str]:
        """What fits no tool."""
        return [glob for glob in self._given if glob not in self._used]


def overlay(document: Any) -> Overlay:
    """Read an overlay: `tools: {NAME: {effect: …}}`."""
    named = cast("dict[str, Any]", document).get("tools") if isinstance(document, dict) else None
    if not isinstance(named, dict) or set(cast("dict[str, Any]", document)) != {"tools"}:
        raise Unfit("has to be tools: {NAME: {FIELD: VALUE}}")
    for name, fields in cast("dict[str, Any]", named).items():
        if not isinstance(fields, dict):
            raise Unfit(f"says nothing about {printable(name, 60)!r}; write {{FIELD: VALUE}}")
        for key in cast("dict[str, Any]", fields):
            if key in _NOT_OVERLAID or key not in FIELDS:
                shown = f"{printable(name, 60)}.{printable(key, 40)}"
                raise Unfit(f"has {shown}, which no overlay sets")
    return Overlay(cast("dict[str, Any]", named))


def _is_weaker(key: str, value: Any, usual: Fields) -> bool:
    if key == "effect":
        known = isinstance(value, str) and value in set(Effect)
        return known and Effect(value).is_weaker_than(Effect(usual["effect"]))
    return key not in _HARMLESS or (key in _CAREFUL and value is not True)
