"""A JSON Schema, checked and compiled once.

Only what is safe to run on every call gets in: references stay inside the document, patterns run in
linear time, and nothing expands beyond a bound (see `bounds`).
"""

from collections.abc import Mapping
from typing import Any, Self, cast

import jsonschema_rs

from toolgate.spec import bounds
from toolgate.spec.bounds import escaped, shortened
from toolgate.spec.document import Document

# Saying all that is wrong tries every branch again at every level of a recursive value.
MAX_EXPLAINED = 100_000
_VALIDATORS: Mapping[str, type[Any]] = {
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
}
_LATEST = "https://json-schema.org/draft/2020-12/schema"
_PATTERNS = jsonschema_rs.RegexOptions()


class Schema(Document):
    """A compiled schema. `is_valid` is what the hot path calls."""

    __slots__ = ("_growth", "_validator", "is_valid")

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        document = self.value()
        found = bounds.check(document, raw)
        self._growth = found.checks if found.recursive else 0
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
        if self._growth and self._growth ** _depth(instance) > MAX_EXPLAINED:
            return [("", "they do not fit, and are nested too deep to say where")]
        found: list[tuple[str, str]] = []
        for error in self._validator.iter_errors(instance):
            found.append((pointer(error.instance_path), shortened(error.message)))
            if len(found) == most:
                break
        return found


def pointer(path: "list[Any]") -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + escaped(part) for part in path)


def _depth(instance: object) -> int:
    """How deep a value is nested, as far as it matters."""
    level, depth = [instance], 0
    while level and depth < 20:
        depth += 1
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (
                cast("dict[str, object]", node).values()
                if isinstance(node, dict)
                else cast("list[object]", node)
            )
        ]
    return depth


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
            f"is no valid JSON Schema: {where}: {shortened(error.message)}{hint}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no valid JSON Schema: {shortened(str(error))}") from None


def _dialect(document: Any) -> str:
    if not isinstance(document, dict):
        return _LATEST
    named = cast("dict[str, Any]", document).get("$schema", _LATEST)
    if isinstance(named, str) and named.rstrip("#") in _VALIDATORS:
        return named.rstrip("#")
    raise ValueError(
        f"names a $schema that is not known: {named!r}; leave it out or write {_LATEST!r}"
    )
