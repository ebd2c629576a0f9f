"""How carefully a tool is handled: by its method and its name, and by the document's word."""

from collections.abc import Mapping
from typing import Any, cast

from toolgate.sources.openapi.operations import Operation
from toolgate.sources.openapi.overlay import NOT_OVERLAID
from toolgate.sources.openapi.prose import printable
from toolgate.sources.openapi.report import Notes
from toolgate.sources.openapi.verbs import changing
from toolgate.spec.effect import Effect
from toolgate.spec.fields import FIELDS

EXTENSION = "x-toolgate"
_PURE = frozenset({"get", "head", "options"})
_REPEATABLE = frozenset({"put", "delete"})
_CAREFUL = frozenset({"destructive", "requires_confirmation", "requires_approval"})
# What a foreign document may say beside `effect`: none of it makes a call easier.
_HARMLESS = _CAREFUL | {
    "confirmation_prompt", "display_name", "description", "category", "categories", "tags",
}  # fmt: skip
Fields = Mapping[str, Any]


def by_method(operation: Operation, notes: Notes) -> dict[str, Any]:
    """What a method promises, unless the operation's own name says otherwise."""
    if operation.method in _PURE:
        word = changing(operation)
        if not word:
            return {"effect": "pure"}
        told = (
            "its method only reads, but its name says that it changes something: taken as "
            "irreversible; where it does only read, say effect: pure in an overlay"
        )
        notes.add(told, f"{operation.shown} ({word})")
        return {"effect": "irreversible"}
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
        if key not in FIELDS or key in NOT_OVERLAID:
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


def _is_weaker(key: str, value: Any, usual: Fields) -> bool:
    if key == "effect":
        known = isinstance(value, str) and value in set(Effect)
        return known and Effect(value).is_weaker_than(Effect(usual["effect"]))
    return key not in _HARMLESS or (key in _CAREFUL and value is not True)
