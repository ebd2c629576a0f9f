"""What a module defines, calls and reads, from its syntax tree. Comments and texts do not count.

In doubt it reads everything: a decision that is asked for too often is slow, one that is kept
although it depends on the call is wrong.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from toolgate.engines import inputs
from toolgate.engines.amounts import amounts
from toolgate.engines.builtins import FORBIDDEN, complaint
from toolgate.engines.inputs import path_of
from toolgate.engines.negation import doubtful, operands
from toolgate.engines.references import Reference, imported, references
from toolgate.gate.policy import PER_CALL

EVERYTHING = "*"
Node = dict[str, Any]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The head of a rule: its name below the package, and of which kind it is."""

    name: str
    kind: str  # "default", "set", "function" or "value"
    line: int
    # Whether a key follows the name: `banned[name] contains reason`.
    keyed: bool = False


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One file, as far as it matters here."""

    file: str
    package: tuple[str, ...]
    rules: tuple[Rule, ...]
    # First parts of what is read below `input`; `*` for the whole or a computed part.
    reads: frozenset[str]
    # Name as written, name with imports followed, line.
    calls: tuple[tuple[str, str, int], ...]
    # What stands inside a `not` and is looked up before it: path (none where computed), line.
    negated: tuple[tuple[tuple[str, ...], int], ...] = ()
    # Paths that rules name, with imports followed, but for what a rule is called itself; line.
    named: tuple[tuple[tuple[str, ...], int], ...] = ()
    # What is referred to, by its rules and by its imports.
    references: tuple[Reference, ...] = ()
    imported: tuple[Reference, ...] = ()
    # Calls that could take any amount of memory: what is wrong, line.
    amounts: tuple[tuple[str, int], ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """What it defines."""
        return frozenset(rule.name for rule in self.rules)


def analyse(tree: Mapping[str, Any]) -> Module:
    """The facts of one module of `Interpreter.syntax()`."""
    ast: Node = tree["ast"]
    source = str(tree["source"]["contents"]).encode()
    imports = dict(_imports(ast["imports"], source))
    rules: list[Node] = ast["rules"]
    package = path_of(ast["package"]["refr"]) or ()
    return Module(
        file=tree["source"]["file"],
        package=package,
        rules=tuple(_rule(rule) for rule in rules),
        reads=frozenset(_reads(ast["imports"])) | frozenset(_reads(rules)),
        calls=tuple(_calls(rules, imports)),
        negated=tuple(operands(rules)),
        references=tuple(references(ast, package, imports)),
        imported=tuple(imported(ast)),
        amounts=tuple(amounts(rules)),
        named=tuple(_named(ast["imports"], rules, imports)),
    )


def per_call(modules: Iterable[Module]) -> frozenset[str]:
    """Which of the parts that differ from call to call these modules may look at."""
    roots = {root for module in modules for root in module.reads}
    return PER_CALL if EVERYTHING in roots else PER_CALL & roots


def bad_calls(modules: Iterable[Module], known: Iterable[Module]) -> Iterator[str]:
    """`file:line: message` for every call of a function that is forbidden or not there."""
    functions = {
        ".".join(("data", *module.package, rule.name))
        for module in known
        for rule in module.rules
        if rule.kind == "function"
    }
    for module in modules:
        own = ".".join(("data", *module.package))
        for written, meant, line in module.calls:
            wrong = _wrong_call(written, meant, own, functions)
            if wrong:
                yield f"{module.file}:{line}: {wrong}."
        for wrong, line in module.amounts:
            yield f"{module.file}:{line}: {wrong}."


def bad_negations(modules: Iterable[Module], known: Iterable[Module]) -> Iterator[str]:
    """`file:line: message` for every `not` that the engines decide differently."""
    rules = [(module.package, rule) for module in known for rule in module.rules]
    sure = {(package, rule.name) for package, rule in rules if rule.kind in {"set", "default"}}
    for module in modules:
        own = {(package, rule.name) for package, rule in rules if package == module.package}
        maybe = frozenset(name for _, name in own - sure)
        for path, line in module.negated:
            if doubtful(path, maybe):
                shown = ".".join(path) or "what is computed"
                yield (
                    f"{module.file}:{line}: `not` around {shown}, which may be missing, is decided "
                    "differently by the engines. Move it to a rule, `_ok if …`: write `not _ok`."
                )


def bad_inputs(modules: Iterable[Module]) -> Iterator[str]:
    """`file:line: message` for every part of `input` that is never there."""
    for module in modules:
        for path, line in module.named:
            wrong = inputs.complaint(path)
            if wrong:
                yield f"{module.file}:{line}: {wrong}"


def _wrong_call(written: str, meant: str, own: str, functions: set[str]) -> str:
    for name in (written, meant):
        if name in FORBIDDEN:
            return complaint(name)
    near = f"{own}.{written}"
    if meant in functions:
        # One engine does not follow imports to functions; the whole path is the same to all.
        whole = meant in {written, near}
        return "" if whole else f"write {meant}(…) instead of {written}(…)"
    if near in functions and "." not in written:
        return ""
    return complaint(meant)


def _named(
    imported: list[Node], rules: list[Node], imports: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], int]]:
    yield from inputs.paths(imported)
    for path, line in inputs.paths([_without_name(rule) for rule in rules]):
        yield (*imports.get(path[0], path[:1]), *path[1:]), line


def _without_name(rule: Node) -> list[Any]:
    if "Spec" not in rule:
        return [rule["Default"]["value"]]
    head = next(iter(rule["Spec"]["head"].values()))
    parts: list[Any] = [rule["Spec"]["bodies"], {**head, "refr": None}]
    name = head["refr"]
    while "Var" not in name:
        inner = next(iter(name.values()))
        parts.append(inner.get("index"))
        name = inner["refr"]
    return parts


def _rule(rule: Node) -> Rule:
    if "Default" in rule:
        default = rule["Default"]
        kind = "function" if default["args"] else "default"
        return Rule(name=_root(default["refr"]), kind=kind, line=default["span"]["line"])
    spec = rule["Spec"]
    (head_kind, head), *_ = cast("Node", spec["head"]).items()
    kind = {"Set": "set", "Func": "function"}.get(head_kind, "value")
    refr = head["refr"]
    return Rule(name=_root(refr), kind=kind, line=spec["span"]["line"], keyed="Var" not in refr)


def _root(node: Node) -> str:
    while "Var" not in node:
        node = next(iter(node.values()))["refr"]
    return str(node["Var"]["value"])


def _imports(imports: list[Node], source: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in imports:
        path = path_of(node["refr"])
        if path is None or path[0] == "rego":
            continue
        span = node.get("as")
        yield (source[span["start"] : span["end"]].decode() if span else path[-1]), path


def _reads(node: Any) -> Iterator[str]:
    """Every use of `input`: by what follows it, or `*`."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _reads(each)
        return
    if not isinstance(node, dict):
        return
    branch = cast("Node", node)
    if "Var" in branch:
        if branch["Var"]["value"] == "input":
            yield EVERYTHING
        return
    for kind, inner in branch.items():
        if kind in {"RefDot", "RefBrack"} and _is_input(inner["refr"]):
            path = path_of({kind: inner})
            yield path[1] if path else EVERYTHING
            if kind == "RefBrack":
                yield from _reads(inner["index"])
        elif kind != "span":
            yield from _reads(inner)


def _is_input(node: Node) -> bool:
    return "Var" in node and node["Var"]["value"] == "input"


def _calls(node: Any, imports: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str, int]]:
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _calls(each, imports)
        return
    if not isinstance(node, dict):
        return
    branch = cast("Node", node)
    for kind, inner in branch.items():
        if kind == "Call":
            path = path_of(inner["fcn"]) or ("a computed function",)
            meant = (*imports.get(path[0], path[:1]), *path[1:])
            yield ".".join(path), ".".join(meant), inner["span"]["line"]
        # A function that stands for another one is called too.
        if kind == "with_mods":
            for change in inner:
                for name in (path_of(change["refr"]), path_of(change["as"])):
                    if name and ".".join(name) in FORBIDDEN:
                        yield ".".join(name), ".".join(name), _line(change)
        yield from _calls(inner, imports)


def _line(node: Node) -> int:
    for value in node.values():
        if isinstance(value, dict):
            inner = cast("Node", value)
            found = inner["line"] if "line" in inner else _line(inner)
            if found:
                return int(found)
    return 0
