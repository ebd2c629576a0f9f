"""`not` around what may be missing: the one place where the engines decide differently.

`not ok(input.args.x)` with no `x` is true in process, while an OPA server looks `x` up first, finds
nothing and drops the rule: a `deny` that holds on one machine is gone on the fleet. So it is
refused, and a rule of its own stands in its place, which both read alike: `not _ok`.
"""

from collections.abc import Iterator
from typing import Any, cast

from toolgate.engines.inputs import FIELDS, path_of

Node = dict[str, Any]
_CONSTANTS = frozenset({"String", "RawString", "Number", "Bool", "Null"})
_ALWAYS = frozenset({"ArrayCompr", "SetCompr", "ObjectCompr"})


def operands(node: Any) -> Iterator[tuple[tuple[str, ...], int]]:
    """Everything inside a `not` that an engine may look up before it."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from operands(each)
    elif isinstance(node, dict):
        for kind, inner in cast("Node", node).items():
            if kind == "NotExpr":
                yield from _inside(inner["expr"], whole=True)
            yield from operands(inner)


def doubtful(path: tuple[str, ...], maybe: frozenset[str]) -> bool:
    """Whether this may be missing; `maybe` are the names of rules that can be undefined."""
    if not path:
        return True
    if path[0] == "input":
        known = FIELDS.get(path[1]) if len(path) > 1 else frozenset[str]()
        return known is None or len(path) > 3 or (len(path) == 3 and path[2] not in known)
    return path[0] == "data" or path[0] in maybe or len(path) > 1


def _inside(node: Node, *, whole: bool) -> Iterator[tuple[tuple[str, ...], int]]:
    """`whole`: what is negated itself, which may be missing; not what it is computed from."""
    kind, inner = next(iter(node.items()))
    if kind in _CONSTANTS or kind in _ALWAYS:
        return
    if kind in {"Var", "RefDot", "RefBrack"}:
        if not whole:
            yield path_of(node) or (), inner["span"]["line"]
        yield from _indexes(node)
    elif kind == "BoolExpr" and inner["op"] == "Eq" and whole:
        for side in (inner["lhs"], inner["rhs"]):
            yield from _inside(side, whole="Call" not in side)
    else:
        for part in _parts(inner):
            yield from _inside(part, whole=False)


def _indexes(node: Node) -> Iterator[tuple[tuple[str, ...], int]]:
    while "Var" not in node:
        kind, inner = next(iter(node.items()))
        if kind == "RefBrack":
            yield from _inside(inner["index"], whole=False)
        if "refr" not in inner:
            return
        node = inner["refr"]


def _parts(inner: Node) -> Iterator[Node]:
    """The expressions that this one is made of."""
    for name in ("lhs", "rhs", "expr", "key", "value", "collection", "params", "items", "fields"):
        part = inner.get(name)
        for each in _flat(part):
            if isinstance(each, dict) and "line" not in each:
                yield cast("Node", each)


def _flat(part: Any) -> Iterator[Any]:
    if isinstance(part, list):
        for each in cast("list[Any]", part):
            yield from _flat(each)
    else:
        yield part
