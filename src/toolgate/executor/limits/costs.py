"""What a call costs, worked out from its definition, its arguments and its result."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolgate.call import Call, Charge
from toolgate.errors import InvalidArguments
from toolgate.executor.mapping import UnmappedError, found
from toolgate.spec.cost import millionths
from toolgate.spec.tool import ToolSpec

_log = logging.getLogger("toolgate.budget")
# Held where only the result tells the amount: enough to notice that nothing is left.
_LEAST = 1


class Price(NamedTuple):
    """A metric, and its amount: fixed, or at a place in the arguments or the result."""

    metric: str
    fixed: int = 0
    argument: str = ""
    # What the argument is where it is left out.
    default: object = None
    result: str = ""


def prices(spec: ToolSpec) -> tuple[Price, ...]:
    """What a call of this tool costs, beside one of `tool_calls`."""
    listed: list[Price] = []
    for cost in spec.costs:
        if not isinstance(cost.amount, str):
            listed.append(Price(cost.metric, fixed=millionths(cost.amount)))
            continue
        root, _, path = cost.amount[1:].partition(".")
        if root == "args":
            listed.append(Price(cost.metric, argument=path, default=_default(spec, path)))
        else:
            listed.append(Price(cost.metric, result=path))
    return tuple(listed)


def known(call: Call, price: Price) -> int:
    """What has to be held before the call runs, or `InvalidArguments`."""
    if price.result:
        return _LEAST
    if not price.argument:
        return price.fixed
    pointer = "/" + price.argument.replace(".", "/")
    try:
        value = found(call.args, price.argument)
    except UnmappedError:
        value = price.default
        if value is None:
            missing = f"is missing, and says how much {price.metric} it costs"
            raise InvalidArguments(call.spec.name, [(pointer, missing)]) from None
    try:
        return millionths(value)
    except ValueError as error:
        raise InvalidArguments(call.spec.name, [(pointer, str(error))]) from None


def real(name: str, at: str, held: int, data: Any) -> int:
    """What it did cost, now that there is a result."""
    if not at:
        return held
    try:
        return millionths(found(data, at))
    except (UnmappedError, ValueError):
        _log.warning("the result of %s does not say its cost at %s", name, at)
        return held


def charged(call: Call, data: Any) -> tuple[tuple[str, int], ...]:
    """What the journal writes to leases with the call's end, in the order of their ids."""
    if not call.charges:
        return ()
    name = call.spec.name
    return tuple(sorted((one.lease, real(name, one.at, one.amount, data)) for one in call.charges))


def _default(spec: ToolSpec, path: str) -> object:
    schema: Any = spec.input_schema.value()
    try:
        return found(schema, f"properties.{path}.default")
    except UnmappedError:
        return None


def held(charges: Sequence[Charge]) -> tuple[tuple[str, int], ...]:
    """What is known to be charged before there is a result."""
    return tuple(sorted((one.lease, one.amount) for one in charges)) if charges else ()


def take(charges: Sequence[Charge]) -> None:
    """The end of the call is about to be written: its purses are settled by that, however late."""
    for one in charges:
        one.taken = True


def settle(charges: Sequence[Charge], written: Sequence[tuple[str, int]]) -> None:
    """Purses spend what the end on record says, and get the rest back."""
    amounts = dict(written)
    for one in charges:
        paid, one.paid = one.paid, None
        if paid is not None:
            paid(amounts.get(one.lease, 0))
