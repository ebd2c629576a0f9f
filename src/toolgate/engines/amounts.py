"""Calls by which a single argument would decide how much memory or time an answer takes.

What decides it has to be written out in the policy: a width, a separator, what is put in the place
of something else. The engine ends the process when there is no memory left.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from toolgate.engines.references import written

Node = dict[str, Any]
_TEXTS = frozenset({"String", "RawString"})
# Which argument has to be written out.
_WRITTEN_OUT = {
    "sprintf": 0,
    "concat": 0,
    "replace": 2,
    "regex.replace": 2,
    "strings.replace_n": 0,
    "bits.lsh": 1,
    "units.parse": 0,
    "units.parse_bytes": 0,
}
_ORDER = ("first", "second", "third")
_WIDE = re.compile(r"%[^a-zA-Z%]*(?:\d{4}|\*)")
_FAR = 64


def amounts(node: Any) -> Iterator[tuple[str, int]]:
    """What is wrong with a call, and its line."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from amounts(each)
    elif isinstance(node, dict):
        for kind, inner in cast("Node", node).items():
            if kind == "Call":
                wrong = _wrong(".".join(written(inner["fcn"])), inner["params"])
                if wrong:
                    yield wrong, int(inner["span"]["line"])
            if kind == "with_mods":
                for change in inner:
                    name = ".".join(written(change["as"]))
                    if name in _WRITTEN_OUT:
                        line = next(iter(cast("Node", change["as"]).values()))["span"]["line"]
                        yield f"{name} cannot stand for another function", int(line)
            yield from amounts(inner)


def _wrong(name: str, params: list[Node]) -> str:
    place = _WRITTEN_OUT.get(name)
    if place is None or place >= len(params):
        return ""
    given = params[place]
    if not _constant(given):
        return (
            f"the {_ORDER[place]} argument of {name} decides how much memory or time is taken; "
            "write it out as a constant"
        )
    (kind, inner), *_ = given.items()
    if name == "sprintf" and kind in _TEXTS and _WIDE.search(str(inner["value"])):
        return "sprintf: a width or precision has at most three digits"
    if name == "bits.lsh" and not (kind == "Number" and _near(inner["value"])):
        return f"bits.lsh: at most {_FAR} bits"
    return ""


def _near(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= _FAR


def _constant(node: Node) -> bool:
    (kind, inner), *_ = node.items()
    if kind in {"Array", "Set"}:
        return all(_constant(each) for each in inner["items"])
    if kind == "Object":
        return all(
            _constant(cast("Node", part))
            for field in inner["fields"]
            for part in field
            if isinstance(part, dict) and "line" not in part
        )
    return kind in _TEXTS or kind in {"Number", "Bool", "Null"}
