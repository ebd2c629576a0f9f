"""A chain as it is written down: steps, what they take from earlier ones, and their waves."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.executor.mapping import UnmappedError, found
from toolgate.executor.recording.claim import check_key
from toolgate.spec.document import measure
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

Mode = Literal["sequential", "parallel"]
_ROOT = "$steps."
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_MOST_TOLD = 200
_HOW = "Write $steps.0.result.FIELD, or the step's name in place of its number."


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a chain. Later steps may call it by `name` instead of its number."""

    tool: str
    args: dict[str, Any] = {}
    name: str = ""
    idempotency_key: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """Steps that are known to fit together, and which earlier ones each of them needs."""

    steps: tuple[Step, ...]
    needs: tuple[frozenset[int], ...]


def read_steps(given: object, *, most: int) -> Plan:
    """The steps, or `InvalidRequest` that names the one that is wrong."""
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Sequence) or not given:
        raise InvalidRequest("A chain is a list of steps, such as [{'tool': 'echo', 'args': {…}}].")
    listed = cast("Sequence[object]", given)
    if len(listed) > most:
        raise InvalidRequest(
            f"A chain has at most {most} steps, and this one has {len(listed)}. Nothing ran."
        )
    steps = [_step(one, index) for index, one in enumerate(listed)]
    names: dict[str, int] = {}
    for index, step in enumerate(steps):
        if step.name and names.setdefault(step.name, index) != index:
            raise wrong(index, f"has the name {step.name!r}, and so has step {names[step.name]}")
    needs = [_needs(step, index, names, len(steps)) for index, step in enumerate(steps)]
    return Plan(tuple(steps), tuple(needs))


def wrong(index: int, what: str) -> InvalidRequest:
    """Something about one step, known before any of them ran."""
    said = what.removesuffix(".")
    return InvalidRequest(f"Step {index} {said}. Nothing of the chain ran.", step=index)


def _step(given: object, index: int) -> Step:
    try:
        step = given if isinstance(given, Step) else msgspec.convert(given, Step)
        measure(step.args)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise wrong(
            index,
            f"does not fit: {str(error)[:_MOST_TOLD]}; it has tool, args, name and idempotency_key",
        ) from None
    if not step.tool:
        raise wrong(index, "names no tool")
    if step.name and not _NAME.match(step.name):
        raise wrong(
            index, "has a name that is not letters, digits, _ and -, or begins with a digit"
        )
    if step.idempotency_key is not None:
        check_key(step.idempotency_key)
    return step


def _references(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            if node.startswith(_ROOT):
                yield node
        elif isinstance(node, dict):
            waiting += cast("dict[str, object]", node).values()
        elif isinstance(node, list):
            waiting += cast("list[object]", node)


def _needs(step: Step, index: int, names: dict[str, int], count: int) -> frozenset[int]:
    needed: set[int] = set()
    for reference in _references(step.args):
        which, _, rest = reference.removeprefix(_ROOT).partition(".")
        of = names.get(which, int(which) if which.isdecimal() and len(which) < 6 else -1)
        if not 0 <= of < count:
            raise wrong(index, f"refers to {reference[:80]!r}, and there is no such step. {_HOW}")
        if of >= index:
            raise wrong(index, f"refers to step {of}, which does not come before it")
        if rest != "result" and not rest.startswith("result."):
            raise wrong(index, f"refers to {reference[:80]!r}, which is no result. {_HOW}")
        needed.add(of)
    return frozenset(needed)


def filled(plan: Plan, index: int, results: dict[int, Any]) -> dict[str, Any]:
    """The arguments of a step, with what earlier ones returned; an `UnmappedError` names a gap."""
    names = {step.name: at for at, step in enumerate(plan.steps) if step.name}

    def value(node: Any) -> Any:
        if isinstance(node, str):
            if not node.startswith(_ROOT):
                # `$$steps.` is the text itself.
                return node[1:] if node.startswith("$" + _ROOT) else node
            which, _, path = node.removeprefix(_ROOT).partition(".")
            known = results[names.get(which, int(which) if which.isdecimal() else -1)]
            try:
                return found({"result": known}, path)
            except UnmappedError:
                raise UnmappedError(node) from None
        if isinstance(node, dict):
            return {name: value(of) for name, of in cast("dict[str, Any]", node).items()}
        if isinstance(node, list):
            return [value(of) for of in cast("list[Any]", node)]
        return node

    return value(plan.steps[index].args)


def waves(
    plan: Plan, specs: Sequence[ToolSpec], mode: Mode, *, parallel_mutations: bool
) -> list[list[int]]:
    """Which steps run at once. No read is moved past a mutation that stands before it, nor one
    mutation past another, unless that was asked for.
    """
    found: list[list[int]] = []
    # Where the present stretch of reads, or of mutations, begins.
    floor, was_read = 0, True
    at: dict[int, int] = {}
    for index, spec in enumerate(specs):
        is_read = spec.effect is Effect.PURE
        alone = mode == "sequential" or not (is_read or parallel_mutations)
        if alone or is_read is not was_read:
            floor, was_read = len(found), is_read
        wave = max([floor, *(at[of] + 1 for of in plan.needs[index])])
        at[index] = wave
        while len(found) <= wave:
            found.append([])
        found[wave].append(index)
    return found
