"""A JSON Schema, checked and compiled once.

Only what is safe to run on every call gets in: references stay inside the document, patterns run in
linear time, and no combination of `allOf`, `anyOf`, `oneOf` and `$ref` can expand beyond a bound.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self, cast

import jsonschema_rs

from toolgate.spec.document import Document

MAX_EXPANSION = 10_000
_VALIDATORS: Mapping[str, type[Any]] = {
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
}
_LATEST = "https://json-schema.org/draft/2020-12/schema"
# Keywords whose value is data, not a schema: a "$ref" inside them is an ordinary key.
_DATA = frozenset({"const", "default", "enum", "example", "examples"})
# Keywords whose value maps names to schemas: a key inside them is a name, not a keyword.
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
# Keywords that apply their subschemas to the same value; these are what can multiply.
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")
_PATTERNS = jsonschema_rs.RegexOptions()


class Schema(Document):
    """A compiled schema. `is_valid` is what the hot path calls."""

    __slots__ = ("_validator", "is_valid")

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        document = self.value()
        _check_references(document)
        _check_expansion(document)
        self._validator = _compile(document)
        self.is_valid = self._validator.is_valid

    @classmethod
    def of(cls, value: object) -> Self:
        """Compile a schema, or raise `ValueError` with what is wrong and where."""
        if not isinstance(value, (dict, bool)):
            raise ValueError(f"is a {type(value).__name__}; a schema is an object")
        return super().of(cast("object", value))

    def problems(self, instance: object, *, most: int = 10) -> list[tuple[str, str]]:
        """What does not fit, as (JSON pointer, sentence) pairs."""
        found: list[tuple[str, str]] = []
        for error in self._validator.iter_errors(instance):
            found.append((pointer(error.instance_path), _shortened(error.message)))
            if len(found) == most:
                break
        return found


def pointer(path: "list[Any]") -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _compile(document: Any) -> Any:
    dialect = _dialect(document)
    try:
        return _VALIDATORS[dialect](
            document, pattern_options=_PATTERNS, offline=True, validate_formats=True
        )
    except jsonschema_rs.ValidationError as error:
        where = pointer(error.instance_path) or "the schema"
        hint = ""
        if '"regex"' in error.message:
            hint = " (patterns run in linear time: no look-around, no back-references)"
        raise ValueError(
            f"is no valid JSON Schema: {where}: {_shortened(error.message)}{hint}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no valid JSON Schema: {_shortened(str(error))}") from None


def _dialect(document: Any) -> str:
    if not isinstance(document, dict):
        return _LATEST
    named = cast("dict[str, Any]", document).get("$schema", _LATEST)
    if isinstance(named, str) and named.rstrip("#") in _VALIDATORS:
        return named.rstrip("#")
    raise ValueError(
        f"names a $schema that is not known: {named!r}; leave it out or write {_LATEST!r}"
    )


def _subschemas(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in the document that stands where a schema can, with its pointer."""
    stack: list[tuple[str, Any, bool]] = [("", document, False)]
    while stack:
        where, node, named = stack.pop()
        if isinstance(node, dict):
            fields = cast("dict[str, Any]", node)
            if not named:
                yield where, fields
            stack.extend(
                (where + pointer([key]), child, not named and key in _NAMED)
                for key, child in fields.items()
                if named or key not in _DATA
            )
        elif isinstance(node, list):
            items = cast("list[Any]", node)
            stack.extend((f"{where}/{index}", child, False) for index, child in enumerate(items))


def _check_references(document: Any) -> None:
    for where, node in _subschemas(document):
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(keyword), str):
                raise ValueError(
                    f"uses {keyword} at {where or '/'}; write a plain '#/$defs/…' $ref"
                )
        target = node.get("$ref")
        if isinstance(target, str) and not target.startswith("#"):
            raise ValueError(
                f"refers outside itself at {where or '/'}: {_shortened(target)!r}; "
                "copy the definition under $defs and refer to it as '#/$defs/…'"
            )
        if where and isinstance(node.get("$id"), str):
            raise ValueError(f"changes its base address with $id at {where}; leave $id out")


def _check_expansion(document: Any) -> None:
    """Bound how many subschemas one value can be held against at once.

    Validation time is exponential in nested `allOf: [$ref, $ref]` although the document is small.
    """
    nodes = dict(_subschemas(document))
    cost: dict[str, int] = {}
    for start in nodes:
        stack = [start]
        open_: set[str] = set()
        while stack:
            where = stack[-1]
            if where in cost:
                stack.pop()
                continue
            parts = _in_place(where, nodes[where], nodes)
            waiting = [part for part in parts if part not in cost]
            if where in open_ or not waiting:
                # A loop that never descends into the value adds nothing that was not counted.
                cost[where] = 1 + sum(cost.get(part, 0) for part in parts)
                if cost[where] > MAX_EXPANSION:
                    raise ValueError(
                        f"expands to more than {MAX_EXPANSION:,} checks of one value "
                        f"at {where or '/'}; combine fewer schemas with allOf, anyOf and oneOf"
                    )
                stack.pop()
                continue
            open_.add(where)
            stack.extend(waiting)


def _in_place(where: str, node: dict[str, Any], nodes: Mapping[str, Any]) -> list[str]:
    parts = [f"{where}/{key}" for key in _IN_PLACE if isinstance(node.get(key), dict)]
    for key in _IN_PLACE_LISTS:
        members = node.get(key)
        if isinstance(members, list):
            parts.extend(
                f"{where}/{key}/{index}" for index in range(len(cast("list[Any]", members)))
            )
    target = node.get("$ref")
    if isinstance(target, str):
        parts.append(target[1:])
    return [part for part in parts if part in nodes]


def _shortened(text: str, most: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
