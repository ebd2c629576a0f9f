"""What a schema may refer to, and how much work one value can be to it.

Validation time is exponential in nested `allOf: [$ref, $ref]` although the document is small. Every
way in which a schema applies others to the same value, or to the same part of it, is counted.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

MAX_EXPANSION = 10_000
# A validator unrolls a recursive schema once more, so that what it applies in place is squared.
MAX_RECURSIVE = 100
MAX_PATTERNS = 200
# Keywords whose value is data, not a schema: a "$ref" inside them is an ordinary key.
_DATA = frozenset({"const", "default", "enum", "example", "examples"})
# Keywords whose value maps names to schemas: a key inside them is a name, not a keyword.
_NAMED = frozenset(
    {
        "$defs",
        "definitions",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)
# Without any of these a schema refers to nothing and holds each value against one schema only.
_WORTH_A_WALK = re.compile(
    rb'"(?:\$ref|\$dynamicRef|\$recursiveRef|\$id|\$anchor|id|allOf|anyOf|oneOf|not|if|contains'
    rb'|dependencies|dependentSchemas|pattern|patternProperties|unevaluated\w+)":'
)


class Bounds(NamedTuple):
    """The most schemas that one path through a value meets; whether they come round again."""

    checks: int = 1
    recursive: bool = False


class _Node(NamedTuple):
    where: str
    fields: dict[str, Any]


def check(document: Any, raw: bytes) -> Bounds:
    """Refuse a schema that reaches outside itself or expands without bound (`ValueError`)."""
    if not _WORTH_A_WALK.search(raw):
        return Bounds()
    nodes = {id(fields): _Node(where, fields) for where, fields in subschemas(document)}
    _check_patterns(nodes)
    targets = _Targets(document, nodes)
    everything = _Cost(nodes, {key: _applied(node, targets) for key, node in nodes.items()})
    found = everything.bounds(MAX_EXPANSION)
    in_place = _Cost(nodes, {key: _in_place(node, targets) for key, node in nodes.items()})
    in_place.bounds(MAX_RECURSIVE if found.recursive else MAX_EXPANSION, loops=False)
    return found


def escaped(part: object) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")


def shortened(text: str, most: int = 200) -> str:
    """One line for a message."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def subschemas(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in the document that stands where a schema can, with its pointer."""
    stack: list[tuple[str, Any, bool]] = [("", document, False)]
    while stack:
        where, node, named = stack.pop()
        if isinstance(node, dict):
            fields = cast("dict[str, Any]", node)
            if not named:
                yield where, fields
            stack.extend(
                (f"{where}/{escaped(key)}", child, not named and key in _NAMED)
                for key, child in fields.items()
                if named or key not in _DATA
            )
        elif isinstance(node, list):
            items = cast("list[Any]", node)
            stack.extend((f"{where}/{index}", child, False) for index, child in enumerate(items))


def _check_patterns(nodes: dict[int, _Node]) -> None:
    """Each compiled pattern can take megabytes."""
    patterns = 0
    for _, fields in nodes.values():
        named = fields.get("patternProperties")
        patterns += len(cast("dict[str, Any]", named)) if isinstance(named, dict) else 0
        patterns += isinstance(fields.get("pattern"), str)
    if patterns > MAX_PATTERNS:
        raise ValueError(f"has {patterns:,} patterns; at most {MAX_PATTERNS} are taken")


class _Targets:
    """What each `$ref` stands for. Only a schema of this very document will do."""

    def __init__(self, document: dict[str, Any], nodes: dict[int, _Node]) -> None:
        self._document = document
        self._nodes = nodes
        self._anchors: dict[str, int] = {}
        base = "id" if "draft-04" in str(document.get("$schema")) else "$id"
        for key, (where, fields) in nodes.items():
            for keyword in ("$dynamicRef", "$recursiveRef"):
                if isinstance(fields.get(keyword), str):
                    raise ValueError(
                        f"uses {keyword} at {where or '/'}; write a plain '#/$defs/…' $ref"
                    )
            if where and isinstance(fields.get(base), str):
                raise ValueError(f"changes its base address with $id at {where}; leave $id out")
            for word in ("$anchor", "$dynamicAnchor"):
                if isinstance(anchor := fields.get(word), str):
                    self._anchors[anchor] = key

    def of(self, node: _Node) -> int | None:
        target = node.fields.get("$ref")
        if not isinstance(target, str):
            return None
        if not target.startswith("#"):
            raise ValueError(
                f"refers outside itself at {node.where or '/'}: {shortened(target)!r}; "
                "copy the definition under $defs and refer to it as '#/$defs/…'"
            )
        fragment = unquote(target[1:])
        found = self._anchors.get(fragment) if fragment[:1] not in {"", "/"} else self._at(fragment)
        if found is None:
            raise ValueError(
                f"refers at {node.where or '/'} to {shortened(target)!r}, where no schema is; "
                "write one under $defs and refer to it as '#/$defs/…'"
            )
        return found

    def _at(self, fragment: str) -> int | None:
        node: Any = self._document
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = cast("dict[str, Any]", node).get(key)
            elif isinstance(node, list) and key.isdecimal() and len(key) < 6:
                items = cast("list[Any]", node)
                node = items[int(key)] if int(key) < len(items) else None
            else:
                return None
        # True and False are schemas too, and cost nothing.
        return id(node) if id(node) in self._nodes else _FREE if isinstance(node, bool) else None


# The place of a schema that is only true or false.
_FREE = 0
# Of each group only one schema meets a given part of the value.
_Groups = list[list[int]]
# Most schemas of a document are leaves, which apply no other.
_TO_ITSELF = frozenset(
    {
        "$ref", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas",
        "dependencies",
    }
)  # fmt: skip
_TO_PARTS = frozenset(
    {
        "properties", "additionalProperties", "patternProperties", "items", "prefixItems",
        "additionalItems", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip


def _in_place(node: _Node, targets: _Targets) -> _Groups:
    """The schemas that a node applies to the very value that it was given."""
    fields = node.fields
    if _TO_ITSELF.isdisjoint(fields):
        return []
    groups = [[id(child)] for key in ("not", "if") for child in _dicts([fields.get(key)])]
    groups.append([id(child) for child in _dicts([fields.get("then"), fields.get("else")])])
    for key in ("allOf", "anyOf", "oneOf"):
        groups.extend([id(child)] for child in _dicts(fields.get(key)))
    for key in ("dependentSchemas", "dependencies"):
        groups.extend([id(child)] for child in _dicts(_values(fields.get(key))))
    target = targets.of(node)
    if target is not None:
        groups.append([target])
    return groups


def _applied(node: _Node, targets: _Targets) -> _Groups:
    """Those, and the ones that it applies to one part of it, an item or a property."""
    fields = node.fields
    groups = _in_place(node, targets)
    if _TO_PARTS.isdisjoint(fields):
        return groups
    properties = [*_values(fields.get("properties")), fields.get("additionalProperties")]
    groups.append([id(child) for child in _dicts(properties)])
    groups.extend([id(child)] for child in _dicts(_values(fields.get("patternProperties"))))
    listed = fields.get("items")
    items = cast("list[Any]", listed) if isinstance(listed, list) else [listed]
    prefix = fields.get("prefixItems")
    items = [*items, *(cast("list[Any]", prefix) if isinstance(prefix, list) else [])]
    groups.append([id(child) for child in _dicts([*items, fields.get("additionalItems")])])
    for key in ("contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"):
        groups.extend([id(child)] for child in _dicts([fields.get(key)]))
    return groups


def _dicts(children: Any) -> list[dict[str, Any]]:
    listed = cast("Sequence[Any]", children) if isinstance(children, list) else ()
    return [cast("dict[str, Any]", child) for child in listed if isinstance(child, dict)]


def _values(named: Any) -> list[Any]:
    return list(cast("dict[str, Any]", named).values()) if isinstance(named, dict) else []


class _Cost:
    """How many checks each schema comes to, from the leaves up."""

    def __init__(self, nodes: dict[int, _Node], groups: dict[int, _Groups]) -> None:
        self._nodes = nodes
        self._groups = groups
        self._known: dict[int, int] = {_FREE: 0}
        self._recursive = False

    def bounds(self, most: int, *, loops: bool = True) -> Bounds:
        for start in self._nodes:
            if start not in self._known:
                self._visit(start, most, loops=loops)
        return Bounds(max(self._known.values()), self._recursive)

    def _visit(self, start: int, most: int, *, loops: bool) -> None:
        stack, open_ = [start], set[int]()
        while stack:
            key = stack[-1]
            if key in self._known:
                stack.pop()
            elif key in open_:
                self._known[key] = self._sum(key, most)
                open_.discard(stack.pop())
            else:
                open_.add(key)
                for child in (child for group in self._groups[key] for child in group):
                    if child in open_:
                        self._came_round(child, loops=loops)
                    elif child not in self._known:
                        stack.append(child)

    def _sum(self, key: int, most: int) -> int:
        # What comes round again was counted where it began.
        known = self._known
        groups = self._groups[key]
        total = 1 + sum(max((known.get(one, 0) for one in group), default=0) for group in groups)
        if total > most:
            raise ValueError(
                f"expands to more than {most:,} checks of one value at "
                f"{self._nodes[key].where or '/'}; combine fewer schemas"
            )
        return total

    def _came_round(self, child: int, *, loops: bool) -> None:
        self._recursive = True
        if not loops:
            raise ValueError(
                f"refers to itself at {self._nodes[child].where or '/'} without going deeper into "
                "the value; refer to it from a property or an item"
            )
