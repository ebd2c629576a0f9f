"""Contradictions: fields that are fine alone and unsafe together."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from toolgate.spec.effect import CHANGES_STATE, Effect, Execution, SideEffect
from toolgate.spec.fit import argument_names
from toolgate.spec.secret import secret_names
from toolgate.spec.tool import ToolSpec


class Contradiction(NamedTuple):
    """A field at odds with another one."""

    field: str
    message: str
    write: str
    others: tuple[str, ...] = ()


def contradictions(spec: ToolSpec, *, effect_given: bool) -> Iterator[Contradiction]:
    """Everything about this spec that cannot be true at once."""
    # An author who wrote no effect would look in vain for the one that is at odds.
    effect = f"is {spec.effect}" if effect_given else f"is not given, which means {spec.effect}"
    yield from _pure(spec, effect)
    yield from _retry(spec, effect)
    yield from _read_only(spec, effect)
    yield from _compensation(spec, effect)
    yield from _probe(spec, effect)
    yield from _downstream_key(spec, effect)
    yield from _resource(spec, effect)
    yield from _asking(spec)
    yield from _idempotency_key(spec)
    yield from _costs(spec)
    yield from _queued(spec)


def _pure(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
    if spec.effect is not Effect.PURE:
        return
    if spec.destructive:
        yield Contradiction(
            "effect",
            f"{effect}, but the tool is destructive",
            "Write effect: irreversible, or destructive: false.",
            others=("destructive",),
        )
    changed = sorted(CHANGES_STATE.intersection(spec.side_effects))
    if changed:
        yield Contradiction(
            "effect",
            f"{effect}, but side_effects lists {', '.join(changed)}",
            "Write effect: idempotent, compensatable or irreversible.",
            others=("side_effects",),
        )


def _retry(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
    is_safe = spec.effect.repeatable or spec.downstream_key is not None
    if spec.retry and spec.retry.attempts > 1 and not is_safe:
        yield Contradiction(
            "retry",
            f"asks for {spec.retry.attempts} attempts, but effect {effect}: "
            "a second attempt could do it twice",
            "Leave retry out, or write effect: idempotent if repeating it is harmless, or "
            "downstream_key if the far side knows a call by its key.",
            others=("effect", "downstream_key"),
        )


def _read_only(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
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
            others=("side_effects",),
        )
    if spec.effect in {Effect.COMPENSATABLE, Effect.IRREVERSIBLE}:
        yield Contradiction(
            "effect",
            f"{effect}, but side_effects lists read_only",
            "Write effect: pure, or leave read_only out.",
            others=("side_effects",),
        )


def _compensation(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
    if spec.effect is Effect.COMPENSATABLE and spec.compensation is None:
        yield Contradiction(
            "compensation",
            "is missing, but effect is compensatable",
            "Write compensation: {tool: NAME, args: {…}}, or effect: irreversible.",
        )
    if spec.compensation is None:
        return
    if spec.effect is not Effect.COMPENSATABLE:
        yield Contradiction(
            "compensation",
            f"is given, but effect {effect}",
            "Write effect: compensatable, or leave compensation out.",
            others=("effect",),
        )
    if spec.compensation.tool == spec.name:
        yield Contradiction(
            "compensation", "names the tool itself", "Name the tool that takes this one back."
        )
    yield from _references(spec, "compensation", spec.compensation.args.value(), ("args", "result"))


def _probe(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
    if spec.probe is None:
        return
    if spec.effect.repeatable:
        yield Contradiction(
            "probe",
            f"is given, but effect {effect}: it would simply be run again, and nobody asked",
            "Leave probe out, or write effect: compensatable or irreversible.",
            others=("effect",),
        )
    if spec.probe.tool == spec.name:
        yield Contradiction(
            "probe", "names the tool itself", "Name a pure tool that can tell what happened."
        )
    yield from _references(spec, "probe", spec.probe.args.value(), ("args", "key"))


def _downstream_key(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
    if spec.downstream_key is not None and spec.effect is Effect.PURE:
        yield Contradiction(
            "downstream_key",
            f"is given, but effect {effect}: there is nothing to be done once",
            "Leave downstream_key out, or write effect: idempotent, compensatable or irreversible.",
            others=("effect",),
        )


def _queued(spec: ToolSpec) -> Iterator[Contradiction]:
    if spec.execution is not Execution.QUEUED:
        for field in ("order_by", "queue_expires"):
            if getattr(spec, field):
                yield Contradiction(
                    field,
                    f"is given, but execution is {spec.execution}",
                    f"Write execution: queued, or leave {field} out.",
                    others=("execution",),
                )
        return
    known = argument_names(spec.input_schema)
    if spec.order_by and known is not None and spec.order_by not in known:
        yield Contradiction(
            "order_by",
            f"names {spec.order_by!r}, which is no argument of the tool",
            "Name one of its arguments.",
            others=("input_schema",),
        )
    for field, schema in (
        ("input_schema", spec.input_schema),
        ("output_schema", spec.output_schema),
    ):
        if schema is not None and secret_names(schema.raw) != frozenset():
            yield Contradiction(
                "execution",
                f"is queued, but {field} marks a secret: what is queued is kept and sent as it is",
                "Write execution: inline, or give the tool its secret by the settings.",
                others=(field,),
            )


def _references(
    spec: ToolSpec, field: str, template: Any, roots: tuple[str, str]
) -> Iterator[Contradiction]:
    """References that point to nothing: `$args.NAME` of this tool, and what else there is."""
    known = argument_names(spec.input_schema)
    for text in _texts(template):
        if not text.startswith("$"):
            continue
        root, _, rest = text[1:].partition(".")
        if root not in roots or bool(rest) == (root == "key"):
            write = " or ".join("$key" if one == "key" else f"${one}.NAME" for one in roots)
            yield Contradiction(
                field, f"holds {text[:60]!r}, which refers to nothing", f"Write {write}."
            )
        elif root == "args" and known is not None and rest.split(".")[0] not in known:
            yield Contradiction(
                field,
                f"refers to the argument {rest.split('.')[0][:60]!r}, which input_schema lacks",
                _one_of(known),
                others=("input_schema",),
            )


def _asking(spec: ToolSpec) -> Iterator[Contradiction]:
    asked = spec.requires_confirmation or spec.requires_approval or spec.destructive
    if spec.confirmation_prompt and not asked:
        yield Contradiction(
            "confirmation_prompt",
            "is given, but requires_confirmation is false: nobody would be asked",
            "Write requires_confirmation: true, or leave the prompt out.",
            others=("requires_confirmation", "requires_approval", "destructive"),
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
    known = argument_names(spec.input_schema)
    for field in spec.idempotency_key:
        if known is not None and field not in known:
            yield Contradiction(
                "idempotency_key",
                f"names {field[:60]!r}, which input_schema lacks",
                _one_of(known),
                others=("input_schema",),
            )


def _resource(spec: ToolSpec, effect: str) -> Iterator[Contradiction]:
    if spec.resource is None:
        return
    if spec.effect is not Effect.PURE:
        yield Contradiction(
            "resource",
            f"is given, but {effect}: reading changes nothing",
            "Write effect: pure, or leave it out.",
            others=("effect",),
        )
    known = argument_names(spec.input_schema)
    for name in spec.resource.names:
        if known is not None and name not in known:
            yield Contradiction(
                "resource",
                f"names {name[:60]!r}, which input_schema lacks",
                _one_of(known),
                others=("input_schema",),
            )


def _costs(spec: ToolSpec) -> Iterator[Contradiction]:
    for cost in spec.costs:
        if not isinstance(cost.amount, str):
            continue
        if not cost.amount.startswith("$"):
            yield Contradiction(
                "costs",
                f"says {cost.amount[:60]!r} for {cost.metric}, which is no amount",
                "Write a number, $args.NAME or $result.NAME.",
            )
        yield from _references(spec, "costs", cost.amount, ("args", "result"))


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
