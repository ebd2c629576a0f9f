"""Schemas of a document as JSON Schema 2020-12, with their references kept.

Each definition is translated once a direction: what is only read is no argument, and what is only
written is no result.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, cast

from toolgate.sources.openapi.keywords import FLAT, Keywords
from toolgate.sources.openapi.naming import Unique, argument
from toolgate.sources.openapi.pointers import Pointer, Pointers, Unresolved, written
from toolgate.sources.openapi.prose import printable, tidy
from toolgate.sources.openapi.report import Notes

Direction = Literal["in", "out"]
# Of one schema without its references: two levels of JSON each.
MAX_LEVELS = 20
_DESCRIPTION = 600
_SCHEMA = (
    "additionalProperties",
    "items",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
)
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_HOLDS_SCHEMAS = frozenset({*_SCHEMA, *_SCHEMAS, "properties", "patternProperties"})
_LEFT_OUT: Mapping[Direction, str] = {"in": "readOnly", "out": "writeOnly"}


class Part(NamedTuple):
    """A translated schema, and the definitions that it refers to."""

    schema: dict[str, Any]
    refs: frozenset[str]


class Schemas:
    """The schemas of one document, in one direction."""

    def __init__(
        self, pointers: Pointers, version: str, notes: Notes, *, direction: Direction
    ) -> None:
        self.pointers = pointers
        self._version = version
        self._notes = notes
        self._left_out = _LEFT_OUT[direction]
        self._keywords = Keywords(version, notes)
        self._names: dict[Pointer, str] = {}
        self._waiting: dict[str, tuple[Pointer, Any]] = {}
        self._known: dict[str, Part] = {}
        self._unique = Unique(80)

    def part(self, schema: Any, where: str) -> Part:
        """A schema as it stands somewhere in the document."""
        refs: set[str] = set()
        found = self._schema(schema, where, refs, 0)
        return Part(found if isinstance(found, dict) else {}, frozenset(refs))

    def definition(self, name: str) -> Part:
        """What `#/$defs/NAME` stands for."""
        known = self._known.get(name)
        if known is None:
            pointer, node = self._waiting.pop(name)
            known = self._known[name] = self.part(node, written(pointer))
        return known

    def unfolded(self, part: Part) -> Part:
        """The schema itself where it is only a reference."""
        for _ in range(8):
            if set(part.schema) != {"$ref"}:
                break
            part = self.definition(next(iter(part.refs)))
        return part

    def closure(self, refs: Iterable[str]) -> dict[str, int]:
        """All definitions that are reached, each with how far away it is, the nearest first."""
        far: dict[str, int] = {}
        level, distance = sorted(refs), 0
        while level:
            distance += 1
            for name in level:
                far[name] = distance
            level = sorted(
                {ref for name in level for ref in self.definition(name).refs} - far.keys()
            )
        return far

    def _schema(self, node: Any, where: str, refs: set[str], depth: int) -> dict[str, Any] | bool:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            self._notes.add("a schema that is none is taken as one of anything", where)
            return {}
        if depth > MAX_LEVELS:
            self._notes.add(f"a schema of more than {MAX_LEVELS} levels is open below them", where)
            return {}
        fields = cast("dict[str, Any]", node)
        if isinstance(fields.get("$ref"), str):
            return self._reference(fields, where, refs, depth)
        found = {
            key: value
            for key in fields
            if key in FLAT and (value := self._keywords.flat(key, fields, where)) is not None
        }
        if not _HOLDS_SCHEMAS.isdisjoint(fields):
            self._inner(fields, found, where, refs, depth)
        return self._keywords.finished(fields, found, where)

    def _reference(
        self, fields: dict[str, Any], where: str, refs: set[str], depth: int
    ) -> dict[str, Any] | bool:
        reference = fields["$ref"]
        try:
            name = self._name(reference)
        except Unresolved as problem:
            self._notes.add(f"{problem}; anything is taken there", where)
            return {}
        refs.add(name)
        found: dict[str, Any] = {"$ref": f"#/$defs/{name}"}
        if self._version != "3.1":
            # All beside a reference means nothing there, but people do describe it.
            if described := tidy(fields.get("description"), _DESCRIPTION):
                found["description"] = described
            return found
        rest = {key: value for key, value in fields.items() if key != "$ref"}
        beside = self._schema(rest, where, refs, depth) if rest else {}
        return found | beside if isinstance(beside, dict) else beside

    def _name(self, reference: str) -> str:
        pointer, node = self.pointers.at(reference)
        name = self._names.get(pointer)
        if name is None:
            is_named = len(pointer) == 3 or (len(pointer) == 2 and pointer[0] == "definitions")
            last = pointer[-1:] if is_named else pointer[-3:]
            name = self._unique.take(argument("_".join(last)))
            self._names[pointer] = name
            self._waiting[name] = (pointer, node)
        return name

    def _inner(
        self,
        fields: dict[str, Any],
        found: dict[str, Any],
        where: str,
        refs: set[str],
        depth: int,
    ) -> None:
        """The schemas that a schema holds."""
        named = fields.get("properties")
        if isinstance(named, dict):
            found["properties"] = {
                name: self._schema(child, where, refs, depth + 1)
                for name, child in cast("dict[str, Any]", named).items()
                if not self._is_left_out(child)
            }
        patterns = fields.get("patternProperties")
        if isinstance(patterns, dict):
            found["patternProperties"] = {
                pattern: self._schema(child, where, refs, depth + 1)
                for pattern, child in cast("dict[str, Any]", patterns).items()
                if self._keywords.pattern(pattern, where) is not None
            }
        for key in _SCHEMA:
            child = fields.get(key)
            if key == "items" and isinstance(child, list):
                found["prefixItems"] = self._each(cast("list[Any]", child), where, refs, depth)
            elif isinstance(child, (dict, bool)):
                found[key] = self._schema(child, where, refs, depth + 1)
        for key in _SCHEMAS:
            listed = fields.get(key)
            if isinstance(listed, list) and listed:
                found[key] = self._each(cast("list[Any]", listed), where, refs, depth)
        self._discriminate(fields, found)

    def _each(self, listed: list[Any], where: str, refs: set[str], depth: int) -> list[Any]:
        return [self._schema(child, where, refs, depth + 1) for child in listed]

    def _is_left_out(self, child: Any) -> bool:
        if not isinstance(child, dict):
            return False
        fields = cast("dict[str, Any]", child)
        if fields.get(self._left_out) is True:
            return True
        if not isinstance(fields.get("$ref"), str):
            return False
        try:
            return self.pointers.follow(fields).get(self._left_out) is True
        except Unresolved:
            return False

    def _discriminate(self, fields: dict[str, Any], found: dict[str, Any]) -> None:
        """Which branch is meant is said by one property, where the document says by which words."""
        told = fields.get("discriminator")
        told = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        name, mapping = told.get("propertyName"), told.get("mapping")
        if not isinstance(name, str) or not isinstance(mapping, dict):
            return
        words: dict[str, list[str]] = {}
        for word, reference in cast("dict[Any, Any]", mapping).items():
            try:
                words.setdefault(self._name(str(reference)), []).append(str(word))
            except Unresolved:
                return
        for key in ("oneOf", "anyOf"):
            for one in cast("list[Any]", found.get(key, [])):
                branch = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
                meant = words.get(str(branch.get("$ref", "")).removeprefix("#/$defs/"))
                if meant:
                    branch["properties"] = {printable(name): {"enum": meant}}
                    branch["required"] = [printable(name)]
