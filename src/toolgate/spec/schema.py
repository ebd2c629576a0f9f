"""A JSON Schema, checked and compiled once.

Only what is safe to run on every call gets in: references stay inside the document, patterns run in
linear time, and nothing expands beyond a bound (see `bounds`).
"""

from collections.abc import Mapping
from typing import Any, Self, cast
from weakref import WeakValueDictionary

import jsonschema_rs
import orjson

from toolgate.spec import bounds, keywords
from toolgate.spec.bounds import escaped, shortened
from toolgate.spec.document import Document
from toolgate.spec.sentence import sentence

# Saying all that is wrong tries every branch again at every level of a recursive value.
# Schemas of up to so many checks are held against any value that gets in.
LIGHT = 128
# Checks times bytes: a tenth of a second.
MAX_WORK = 2_000_000
# Bytes of the schema times bytes of the value: beyond it one problem is told, not ten.
MAX_TOLD = 4_000_000
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

    __slots__ = ("__weakref__", "_cost", "_growth", "_validator", "is_valid")

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        document = self.value()
        found = bounds.check(document, raw)
        self._growth = found.checks if found.recursive else 0
        self._validator = _compile(document)
        keywords.check(document)
        self._cost = max(found.checks, _longest_enum(document, raw) // 16)
        light = self._cost <= LIGHT
        self.is_valid = self._validator.is_valid if light else self._is_valid_in_time

    @classmethod
    def of(cls, value: object) -> Self:
        """Compile a schema, or raise `ValueError` with what is wrong and where."""
        if not isinstance(value, (dict, bool)):
            raise ValueError(f"is a {type(value).__name__}; a schema is an object")
        raw = Document.of(cast("object", value)).raw
        known = _KNOWN.get(raw)
        if known is None:
            known = _KNOWN[raw] = cls(raw)
        return cast("Self", known)

    def problems(self, instance: object, *, most: int = 10) -> list[tuple[str, str]]:
        """What does not fit, as (JSON pointer, sentence) pairs."""
        size = _size(instance)
        if self._cost > LIGHT and self._cost * size > MAX_WORK:
            return [("", "they are too large to be held against a schema of this size")]
        if size * len(self.raw) > MAX_TOLD:
            return self._first_problem(instance)
        if self._growth and self._growth ** _depth(instance) > MAX_EXPLAINED:
            return [("", "they do not fit, and are nested too deep to say where")]
        found: list[tuple[str, str]] = []
        document = self.value()
        for error in self._validator.iter_errors(instance):
            found.append((pointer(error.instance_path), sentence(error, document)))
            if len(found) == most:
                break
        return found

    def _is_valid_in_time(self, instance: object) -> bool:
        """A large schema and a large value together take longer than a caller may ask for."""
        return self._cost * _size(instance) <= MAX_WORK and self._validator.is_valid(instance)

    def _first_problem(self, instance: object) -> list[tuple[str, str]]:
        """The validator makes a list of all problems, each with its value, before it tells one."""
        try:
            self._validator.validate(instance)
        except jsonschema_rs.ValidationError as error:
            return [(pointer(error.instance_path), shortened(error.message))]
        return []


# Many tools of one service take the same, and a file that is read again has what it had.
_KNOWN: WeakValueDictionary[bytes, Schema] = WeakValueDictionary()


def pointer(path: "list[Any]") -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + escaped(part) for part in path)


def _longest_enum(document: Any, raw: bytes) -> int:
    """How many members a value is compared with; sixteen take as long as one other check."""
    if len(raw) < 16 * LIGHT or b'"enum":' not in raw:
        return 0
    longest, stack = 0, [document]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            fields = cast("dict[str, Any]", node)
            members = fields.get("enum")
            longest = max(
                longest, len(cast("list[Any]", members)) if isinstance(members, list) else 0
            )
            stack.extend(fields.values())
        elif isinstance(node, list):
            stack.extend(cast("list[Any]", node))
    return longest


def _size(instance: object) -> int:
    try:
        return len(orjson.dumps(instance))
    except TypeError:
        # Not JSON, which the caller of this tells; until then it is as large as can be.
        return MAX_WORK


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
