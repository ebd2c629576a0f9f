"""Contradictions: fields that are fine alone and unsafe together."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from toolgate.spec.effect import CHANGES_STATE, Effect, SideEffect
from toolgate.spec.tool import ToolSpec

# Where these stand, the argument names are not all said outright.
_COMBINED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"})


class Contradiction(NamedTuple):
    """A field at odds with another one."""

    field: str
    message: str
    write: str
    other: str = ""


def contradictions(spec: ToolSpec) -> Iterator[Contradiction]:
    """Everything about this spec that cannot be true at once."""
    yield from _effect(spec)
    yield from _read_only(spec)
    yield from _compensation(spec)
    yield from _asking(spec)
    yield from _idempotency_key(spec)


def _effect(spec: ToolSpec) -> Iterator[Contradiction]:
    if spec.effect is Effect.PURE:
        if spec.destructive:
            yield Contradiction(
                "effect",
                "is pure, but the tool is destructive",
                "Write effect: irreversible, or destructive: false.",
                other="destructive",
            )
        changed = sorted(CHANGES_STATE.intersection(spec.side_effects))
        if changed:
            yield Contradiction(
                "effect",
                f"is pure, but side_effects lists {', '.join(changed)}",
                "Write effect: idempotent, compensatable or irreversible.",
                other="side_effects",
            )
    if spec.retry and spec.retry.attempts > 1 and not spec.effect.repeatable:
        yield Contradiction(
            "retry",
            f"asks for {spec.retry.attempts} attempts, but the effect is {spec.effect}: "
            "a second attempt could do it twice",
            "Leave retry out, or write effect: idempotent if repeating it is harmless.",
            other="effect",
        )


def _read_only(spec: ToolSpec) -> Iterator[Contradiction]:
    if SideEffect.READ_ONLY not in spec.side_effects:
        return
    changed = sorted(CHANGES_STATE.intersection(spec.side_effects))
    if changed:
        yield Contradiction(
            "side_effects",
            f"lists read_only together with {', '.join(changed)}",
            "Leave one of them out.",
        )
    if spec.destructive:
        yield Contradiction(
            "destructive",
            "is true, but side_effects lists read_only",
            "Write destructive: false, or leave read_only out.",
            other="side_effects",
        )
    if spec.effect in {Effect.COMPENSATABLE, Effect.IRREVERSIBLE}:
        yield Contradiction(
            "effect",
            f"is {spec.effect}, but side_effects lists read_only",
            "Write effect: pure, or leave read_only out.",
            other="side_effects",
        )


def _compensation(spec: ToolSpec) -> Iterator[Contradiction]:
    if spec.effect is Effect.COMPENSATABLE and spec.compensation is None:
        yield Contradiction(
            "compensation",
            "is missing, but the effect is compensatable",
            "Write compensation: {tool: NAME, args: {…}}, or effect: irreversible.",
        )
    if spec.compensation is None:
        return
    if spec.effect is not Effect.COMPENSATABLE:
        yield Contradiction(
            "compensation",
            f"is given, but the effect is {spec.effect}",
            "Write effect: compensatable, or leave compensation out.",
            other="effect",
        )
    if spec.compensation.tool == spec.name:
        yield Contradiction(
            "compensation", "names the tool itself", "Name the tool that takes this one back."
        )
    known = _properties(spec)
    for text in _texts(spec.compensation.args.value()):
        if not text.startswith("$"):
            continue
        root, _, rest = text[1:].partition(".")
        if root not in {"args", "result"} or not rest:
            yield Contradiction(
                "compensation",
                f"holds {text[:60]!r}, which refers to nothing",
                "Write $args.NAME or $result.NAME.",
            )
        elif root == "args" and known is not None and rest.split(".")[0] not in known:
            yield Contradiction(
                "compensation",
                f"refers to the argument {rest.split('.')[0][:60]!r}, which input_schema lacks",
                _one_of(known),
                other="input_schema",
            )


def _asking(spec: ToolSpec) -> Iterator[Contradiction]:
    if spec.confirmation_prompt and not spec.requires_confirmation:
        yield Contradiction(
            "confirmation_prompt",
            "is given, but requires_confirmation is false: nobody would be asked",
            "Write requires_confirmation: true, or leave the prompt out.",
            other="requires_confirmation",
        )
    if not spec.allowed_callers:
        yield Contradiction(
            "allowed_callers",
            "is empty: nobody could call it",
            "Write allowed_callers: [direct], or enabled: false.",
        )


def _idempotency_key(spec: ToolSpec) -> Iterator[Contradiction]:
    if not spec.idempotency_key:
        return
    known = _properties(spec)
    for field in spec.idempotency_key:
        if known is not None and field not in known:
            yield Contradiction(
                "idempotency_key",
                f"names {field[:60]!r}, which input_schema lacks",
                _one_of(known),
                other="input_schema",
            )


def _properties(spec: ToolSpec) -> frozenset[str] | None:
    """The argument names, where the schema says them outright."""
    document = cast("dict[str, Any]", spec.input_schema.value())
    if not _COMBINED.isdisjoint(document):
        return None
    properties = document.get("properties", {})
    return frozenset(cast("dict[str, Any]", properties))


def _one_of(known: frozenset[str]) -> str:
    names = sorted(known)
    shown = ", ".join(name[:60] for name in names[:10])
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return f"Use one of: {shown or 'none are declared'}{more}."


def _texts(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            stack.extend(cast("dict[str, Any]", node).values())
        elif isinstance(node, list):
            stack.extend(cast("list[Any]", node))
