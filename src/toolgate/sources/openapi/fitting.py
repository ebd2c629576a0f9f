"""Schemas within the bounds of tools: whole where that can be, else open from some depth on."""

from typing import Any, NamedTuple, cast

import orjson

from toolgate.sources.openapi.schemas import Part, Schemas
from toolgate.spec.schema import Schema

# How far definitions are kept where not all are; the first that fits.
_DISTANCES = (8, 5, 4, 3, 2, 1, 0)
_LEVELS = (8, 6, 4, 3, 2, 1)
TOO_LARGE = "is too large for a tool"


class Fitted(NamedTuple):
    """A schema that a tool may have, and why it says less than the document."""

    schema: dict[str, Any]
    problem: str = ""


class Fitting:
    """Holds schemas of one direction against the bounds; each definition is measured once."""

    def __init__(self, schemas: Schemas, *, most: int) -> None:
        self._schemas = schemas
        self._most = most
        self._sizes: dict[str, int] = {}
        self._far: dict[frozenset[str], dict[str, int]] = {}
        self._bare: dict[str, dict[str, Any]] = {}
        self._compiled: list[Schema] = []

    def whole(self, root: Part) -> dict[str, Any] | None:
        """The schema with all its definitions, or nothing."""
        far = self._reached(root)
        if self._size(root, far) > self._most:
            return None
        found = self._with(root, far)
        return None if self._problem(found) else found

    def fitted(self, root: Part) -> Fitted | None:
        """The schema with as many of its definitions as fit; `None` where nothing of it does."""
        far = self._reached(root)
        problem = TOO_LARGE
        if self._size(root, far) <= self._most:
            found = self._with(root, far)
            problem = self._problem(found)
            if not problem:
                return Fitted(found)
        # First without the words in what is far away, then without what is far away.
        for distance in (max(far.values(), default=0), *_DISTANCES):
            kept = {name: at for name, at in far.items() if at <= distance}
            if len(kept) == len(far) and distance in _DISTANCES:
                continue
            found = self._with(root, kept, bare=True)
            if not self._problem(found):
                return Fitted(found, problem)
        # What is written out in place is cut the same way.
        for levels in _LEVELS:
            properties = {
                name: _cut(one, levels) for name, one in root.schema.get("properties", {}).items()
            }
            found = self._with(Part(root.schema | {"properties": properties}, root.refs), {})
            if not self._problem(found):
                return Fitted(found, problem)
        return None

    def _reached(self, root: Part) -> dict[str, int]:
        known = self._far.get(root.refs)
        if known is None:
            known = self._far[root.refs] = self._schemas.closure(root.refs)
        return known

    def _size(self, root: Part, names: dict[str, int]) -> int:
        """About how many bytes it has; too few rather than too many."""
        size = len(orjson.dumps(root.schema))
        for name in names:
            if name not in self._sizes:
                schema = self._schemas.definition(name).schema
                self._sizes[name] = len(orjson.dumps(schema)) + len(name)
            size += self._sizes[name]
            if size > self._most:
                break
        return size

    def _with(self, root: Part, kept: dict[str, int], *, bare: bool = False) -> dict[str, Any]:
        """With the definitions that are kept; what these refer to beside them is open."""
        if not root.refs:
            return root.schema
        edge = set(root.refs)
        for name in kept:
            edge |= self._schemas.definition(name).refs
        definitions = {
            name: self._without_words(name) if bare and at > 1 else self._schema(name)
            for name, at in kept.items()
        }
        definitions |= {name: _open(self._schema(name)) for name in edge - kept.keys()}
        return root.schema | {"$defs": dict(sorted(definitions.items()))}

    def _schema(self, name: str) -> dict[str, Any]:
        return self._schemas.definition(name).schema

    def _without_words(self, name: str) -> dict[str, Any]:
        if name not in self._bare:
            self._bare[name] = _bare(self._schema(name))
        return self._bare[name]

    def _problem(self, schema: dict[str, Any]) -> str:
        try:
            if len(orjson.dumps(schema)) > self._most:
                return TOO_LARGE
            # Kept, so that whoever reads the tool does not compile it again.
            self._compiled.append(Schema.of(schema))
        except (ValueError, TypeError) as error:
            return str(error)
        return ""


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """Only what kind of value it is."""
    return {key: schema[key] for key in ("type", "description") if key in schema}


def _bare(node: Any, *, named: bool = False) -> Any:
    """Without descriptions and examples. `named`: its keys are names, not keywords."""
    if isinstance(node, list):
        return [_bare(one) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    return {
        key: value
        if not named and key in _DATA
        else _bare(value, named=key in _NAMED and not named)
        for key, value in fields.items()
        if named or key not in _WORDS
    }


def _cut(node: Any, levels: int) -> Any:
    """Without words below the first level, and open below so many."""
    if not isinstance(node, dict):
        return node
    top = cast("dict[str, Any]", node)
    words = {key: top[key] for key in ("description",) if key in top}
    return _pruned(_bare(top), levels) | words


def _pruned(node: Any, levels: int) -> Any:
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    if levels == 0:
        return {key: fields[key] for key in ("type", "enum", "$ref") if key in fields}
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if key in _NAMED and isinstance(value, dict):
            named = cast("dict[str, Any]", value).items()
            found[key] = {name: _pruned(one, levels - 1) for name, one in named}
        elif key in _LISTED and isinstance(value, list):
            found[key] = [_pruned(one, levels - 1) for one in cast("list[Any]", value)]
        elif key in _SINGLE:
            found[key] = _pruned(value, levels - 1)
        else:
            found[key] = value
    return found


_WORDS = frozenset({"description", "title", "examples"})
_DATA = frozenset({"default", "enum", "const"})
_NAMED = frozenset({"properties", "patternProperties"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains"})
