"""What there is below `input`, and which of it a module names. A name that is not there is never
true, so that a rule with a misspelt one silently does nothing.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, cast

Node = dict[str, Any]
Path = tuple[str, ...]
# What the gate always gives, whoever calls; see docs/reference/policy-input.md.
FIELDS: Mapping[str, frozenset[str]] = {
    "action": frozenset(),
    "caller": frozenset(
        {"tenant", "agent", "user", "persona", "roles", "session", "delegation"}
    ),
    "tool": frozenset({
        "name", "effect", "side_effects", "tags", "category", "categories", "permissions",
        "provider", "destructive", "requires_confirmation", "requires_approval", "enabled",
        "source",
    }),
    "persona": frozenset({"can_add_tools"}),
    "context": frozenset({"read_only", "no_web", "facts"}),
    "time": frozenset({"unix", "iso", "weekday", "hour", "minute"}),
    "settings": frozenset({"unlisted_personas_may_add"}),
}  # fmt: skip
# With some questions only; what is below an argument or a tool's name is the caller's.
_SOMETIMES: Mapping[str, frozenset[str]] = {
    "args": frozenset(),
    "history": frozenset({"session", "turn"}),
}
_ALL: Mapping[str, frozenset[str]] = {**FIELDS, **_SOMETIMES}


def path_of(node: Node) -> Path | None:
    """The parts of `a.b["c"]`; nothing where one of them is computed."""
    if "Var" in node:
        return (str(node["Var"]["value"]),)
    if "RefDot" in node:
        before, last = path_of(node["RefDot"]["refr"]), node["RefDot"]["field"][1]
    elif "RefBrack" in node:
        before = path_of(node["RefBrack"]["refr"])
        index = node["RefBrack"]["index"]
        text = index.get("String") or index.get("RawString")
        last = text["value"] if text else None
    else:
        return None
    return None if before is None or last is None else (*before, str(last))


def paths(node: Any) -> Iterator[tuple[Path, int]]:
    """Every path that is written out, and each beginning of one, with its line."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from paths(each)
    elif isinstance(node, dict):
        for kind, inner in cast("Node", node).items():
            if kind in {"Var", "RefDot", "RefBrack"} and (path := path_of({kind: inner})):
                yield path, inner["span"]["line"]
            yield from paths(inner)


def complaint(path: Path) -> str:
    """What is wrong with a path below `input`; empty where nothing is."""
    if path[0] != "input" or not 2 <= len(path) <= 3:
        return ""
    known = _ALL if len(path) == 2 else _ALL.get(path[1], ())
    if not known or path[-1] in known:
        return ""
    above = ".".join(path[:-1])
    close = get_close_matches(path[-1], known, n=1)
    hint = (
        f"did you mean {above}.{close[0]}?" if close else f"there are {', '.join(sorted(known))}."
    )
    return f"there is no {'.'.join(path)}; {hint}"
