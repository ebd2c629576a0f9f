"""Whether a definition fits the function that it names: its arguments, and the care it asks for."""

from collections.abc import Collection
from typing import Any, NamedTuple, cast

from toolgate.spec.document import Document
from toolgate.spec.tool import ToolSpec

# Where these stand, the argument names are not all said outright.
_COMBINED = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"}
)
_CARE = ("destructive", "requires_confirmation", "requires_approval")


class Parameters(NamedTuple):
    """What a function can be called with, by name."""

    names: frozenset[str]
    required: frozenset[str]
    takes_more: bool


def argument_names(schema: Document) -> frozenset[str] | None:
    """The argument names, where a schema says them outright."""
    document = cast("dict[str, Any]", schema.value())
    if not _COMBINED.isdisjoint(document):
        return None
    return frozenset(cast("dict[str, Any]", document.get("properties", {})))


def misfit(schema: Document, takes: Parameters) -> str | None:
    """Why no call that follows this schema could reach the function, or `None`."""
    named = argument_names(schema)
    # A schema that names nothing and forbids nothing leaves the names to the function.
    if named is None or (not named and schema.value().get("additionalProperties") is not False):
        return None
    lacking = sorted(takes.required - named)
    if lacking:
        return f"the function requires {_listed(lacking)}, which input_schema lacks"
    unknown = [] if takes.takes_more else sorted(named - takes.names)
    if unknown:
        return f"input_schema names {_listed(unknown)}, which the function does not take"
    return None


def carelessness(spec: ToolSpec, own: ToolSpec, declared: Collection[str]) -> str | None:
    """Why a definition asks for less care than the function's own `@tool`, or `None`.

    `own` is what the function says of itself, `declared` the fields that its decorator gives.
    """
    where = spec.origin.where or "its definition"
    if "effect" in declared and spec.effect.is_weaker_than(own.effect):
        return (
            f"the function says effect: {own.effect}, its definition effect: {spec.effect}; "
            f"write effect: {own.effect} in {where}"
        )
    for field in _CARE:
        if field in declared and getattr(own, field) and not getattr(spec, field):
            return f"the function says {field}: true; write {field}: true in {where}"
    return None


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name[:60]) for name in names[:5]) + (" and more" if names[5:] else "")
