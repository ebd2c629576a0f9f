"""Which rule refers to what: the paths in a module's syntax tree, with imports followed.

A path that is computed counts as far as it is written out: `data.shop[x].y` is `data.shop`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

Node = dict[str, Any]
Path = tuple[str, ...]
_REFERENCES = frozenset({"Var", "RefDot", "RefBrack"})
_OWN = "toolgate_"


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and what it may mean by a path: its own package's, or what is imported."""

    rule: Path
    targets: tuple[Path, ...]
    line: int


def references(ast: Node, package: Path, imports: Mapping[str, Path]) -> Iterator[Reference]:
    """Everything that the rules of a module refer to."""
    own = ("data", *package)
    for wrapped in ast["rules"]:
        (kind, rule), *_ = cast("Node", wrapped).items()
        head = rule if kind == "Default" else next(iter(rule["head"].values()))
        name = (*own, *written(head["refr"]))
        local = set(_declared(rule)) | {str(arg["Var"]["value"]) for arg in _plain_arguments(head)}
        parts = [
            *_indexes(head["refr"]),
            *([part for key, part in head.items() if key not in {"refr", "args", "span"}]),
            rule.get("bodies"),
        ]
        for path, line, called in _paths(parts):
            if path[0] in local and not called:
                continue
            targets = (path,) if path[0] == "data" else ((*own, *path), _followed(path, imports))
            yield Reference(rule=name, targets=targets, line=line)
        for target, replacement, line in _replaced(rule):
            yield Reference(
                rule=_followed(target, imports) if target[0] == "data" else (*own, *target),
                targets=((*own, *replacement), _followed(replacement, imports)),
                line=line,
            )


def imported(ast: Node) -> Iterator[Reference]:
    """What a module imports."""
    for node in ast["imports"]:
        yield Reference(rule=(), targets=(written(node["refr"]),), line=int(node["span"]["line"]))


def bad_references(file: str, found: Iterable[Reference]) -> Iterator[str]:
    """`file:line: message` where a path leads to all of the data, or to what the gate keeps there.

    Behind both stands the whole `input`, which nobody could tell from the module that reads it.
    """
    for reference in found:
        for path in reference.targets:
            if path == ("data",):
                yield (
                    f"{file}:{reference.line}: `data` as a whole, or a computed part of it, is not "
                    "given to a policy. Write the document's name: data.shop[…]."
                )
            elif path[0] == "data" and path[1].startswith(_OWN):
                yield f"{file}:{reference.line}: data.{path[1]} is the gate's own."


def written(node: Node) -> Path:
    """The parts of a path up to the first that is computed; nothing where it starts with none."""
    parts: list[str | None] = []
    while "Var" not in node:
        (kind, inner), *_ = node.items()
        if kind == "RefDot":
            parts.append(str(inner["field"][1]))
        elif kind == "RefBrack":
            text = inner["index"].get("String") or inner["index"].get("RawString")
            parts.append(str(text["value"]) if text else None)
        else:
            return ()
        node = inner["refr"]
    parts.append(str(node["Var"]["value"]))
    parts.reverse()
    known = parts.index(None) if None in parts else len(parts)
    return tuple(str(part) for part in parts[:known])


def _followed(path: Path, imports: Mapping[str, Path]) -> Path:
    return (*imports.get(path[0], path[:1]), *path[1:])


def _paths(node: Any, *, called: bool = False) -> Iterator[tuple[Path, int, bool]]:
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _paths(each)
    elif isinstance(node, dict):
        for kind, inner in cast("Node", node).items():
            if kind in _REFERENCES:
                path = written({kind: inner})
                if path:
                    yield path, int(inner["span"]["line"]), called
                yield from _paths(list(_indexes({kind: inner})))
            elif kind == "fcn":
                yield from _paths(inner, called=True)
            elif kind != "span":
                yield from _paths(inner)


def _indexes(node: Node) -> Iterator[Node]:
    """What stands in the brackets of a path, and what it starts with where that is no name."""
    while "Var" not in node:
        (kind, inner), *_ = node.items()
        if kind == "RefBrack":
            yield inner["index"]
        elif kind != "RefDot":
            yield node
            return
        node = inner["refr"]


def _replaced(node: Any) -> Iterator[tuple[Path, Path, int]]:
    """`with f as g`: who calls the one calls the other."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _replaced(each)
    elif isinstance(node, dict):
        for kind, inner in cast("Node", node).items():
            if kind == "with_mods":
                for change in inner:
                    (shape, value), *_ = cast("Node", change["as"]).items()
                    target, path = written(change["refr"]), written(change["as"])
                    if shape in _REFERENCES and target and path and target[0] != "input":
                        yield target, path, int(value["span"]["line"])
            yield from _replaced(inner)


def _plain_arguments(head: Node) -> Iterator[Node]:
    for arg in head.get("args") or ():
        if "Var" in arg:
            yield arg


def _declared(node: Any) -> Iterator[str]:
    """Names that a rule gives to something of its own; a rule of the same name is not meant."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _declared(each)
    elif isinstance(node, dict):
        for kind, inner in cast("Node", node).items():
            if kind == "SomeIn":
                yield from _names([inner["key"], inner["value"]])
            elif kind == "AssignExpr" and inner["op"] == "ColEq":
                yield from _names([inner["lhs"]])
            yield from _declared(inner)


def _names(nodes: list[Any]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, dict) and "Var" in node:
            yield str(cast("Node", node)["Var"]["value"])
