"""Single keywords of a schema, as 2020-12 has them. What says nothing there is left out."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import orjson

from toolgate.sources.openapi.prose import printable, tidy
from toolgate.sources.openapi.report import Notes
from toolgate.spec.schema import Schema

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_DESCRIPTION = 600
_SMALL = 256
_TITLE = 120


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


# A keyword whose value is none of these says nothing to a validator, or is refused by it.
_TAKES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _is_number),
    **dict.fromkeys(
        (
            "maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties",
            "maxContains", "minContains",
        ),
        _is_count,
    ),
    **dict.fromkeys(("uniqueItems", "deprecated", "writeOnly", "readOnly"), _is_flag),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), lambda value: isinstance(value, str)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "enum": lambda value: isinstance(value, list) and value != [],
}  # fmt: skip
_OWN = frozenset(
    {"type", "format", "pattern", "required", "description", "title", "default", "const",
     "example", "examples"}
)  # fmt: skip
FLAT = frozenset(_TAKES) | _OWN


class Keywords:
    """Reads single keywords. What has to be left out and changes the meaning is noted."""

    def __init__(self, version: str, notes: Notes) -> None:
        self._version = version
        self._notes = notes
        self._patterns: dict[str, bool] = {}

    def flat(self, key: str, fields: dict[str, Any], where: str) -> Any:  # noqa: PLR0911  a row a keyword
        """A keyword's value, or `None` where it is left out."""
        value = fields[key]
        takes = _TAKES.get(key)
        if takes is not None:
            if takes(value):
                # Beyond 64 bits JSON has no whole numbers that all can read.
                is_huge = type(value) is int and not -(2**63) <= value < 2**63
                return float(value) if is_huge else value
            if not isinstance(value, bool) and value is not None:
                self._notes.add(f"{key} has a value that it does not take; left out", where)
            return None
        match key:
            case "type":
                return self._type(value, where)
            case "pattern":
                return self.pattern(value, where)
            case "description":
                return tidy(value, _DESCRIPTION) or None
            case "title":
                return tidy(value, _TITLE) or None
            case "format":
                return value if isinstance(value, str) and len(value) <= 40 else None
            case "required":
                return _texts(value)
            case "examples":
                return _small(value) if isinstance(value, list) else None
            case "example":
                # As one of the list that came in its place.
                return None
            case _:
                return _small(value)

    def pattern(self, pattern: Any, where: str) -> str | None:
        """A pattern that runs in linear time."""
        if not isinstance(pattern, str):
            return None
        known = self._patterns.get(pattern)
        if known is None:
            known = self._patterns[pattern] = _is_usable(pattern)
        if known:
            return pattern
        self._notes.add(
            f"the pattern {printable(pattern, 60)!r} does not run in linear time; left out", where
        )
        return None

    def finished(self, fields: dict[str, Any], found: dict[str, Any], where: str) -> dict[str, Any]:
        """What takes a look at several keywords."""
        example = fields.get("example")
        if example is not None and "examples" not in found and _small([example]) is not None:
            found["examples"] = [example]
        for bound in ("Minimum", "Maximum"):
            inclusive = bound.lower()
            if fields.get(f"exclusive{bound}") is True and inclusive in found:
                found[f"exclusive{bound}"] = found.pop(inclusive)
        if fields.get("type") == "file":
            found |= {"type": "string", "format": "binary"}
        if found.get("format") == "binary":
            found["contentEncoding"] = found.get("contentEncoding", "base64")
        if "required" in found:
            self._require(fields, found, where)
        if self._version != "3.1" and True in (fields.get("nullable"), fields.get("x-nullable")):
            return _nullable(found)
        return found

    def _require(self, fields: dict[str, Any], found: dict[str, Any], where: str) -> None:
        """What is left out of the properties is not required either."""
        given = fields.get("properties")
        before = cast("dict[str, Any]", given).keys() if isinstance(given, dict) else set[str]()
        gone = before - found.get("properties", {}).keys()
        if found.get("additionalProperties") is False and "patternProperties" not in found:
            lacking = set(found["required"]) - before
            if lacking:
                self._notes.add("required names a property that may not be there", where)
            gone |= lacking
        found["required"] = [name for name in found["required"] if name not in gone]
        if not found["required"]:
            del found["required"]

    def _type(self, value: Any, where: str) -> Any:
        if isinstance(value, str):
            if value in _TYPES:
                return value
            if value != "file":
                told = f"the type {printable(value, 40)!r} is unknown; anything is taken"
                self._notes.add(told, where)
            return None
        if isinstance(value, list):
            kept = [one for one in dict.fromkeys(_texts(value) or ()) if one in _TYPES]
            return kept or None
        return None


def _texts(value: Any) -> list[str] | None:
    if not isinstance(value, list):
        # In drafts before the fourth, `required` is true or false.
        return None
    return list(dict.fromkeys(one for one in cast("list[Any]", value) if isinstance(one, str)))


def _small(value: Any) -> Any:
    return value if is_small(value) else None


def is_small(value: Any) -> bool:
    """Whether to keep an example or a default; a long one is worth less than its room."""
    try:
        return len(orjson.dumps(value)) <= _SMALL
    except TypeError:
        return False


def _is_usable(pattern: str) -> bool:
    try:
        Schema.of({"type": "string", "pattern": pattern})
    except ValueError:
        return False
    return True


def _nullable(found: dict[str, Any]) -> dict[str, Any]:
    kind = found.get("type")
    if "enum" in found and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
    if isinstance(kind, str):
        return found | {"type": [kind, "null"]}
    if not found or not {"$ref", "allOf", "anyOf", "oneOf"} & found.keys():
        return found
    described = {key: found.pop(key) for key in ("title", "description") if key in found}
    return described | {"anyOf": [found, {"type": "null"}]}
