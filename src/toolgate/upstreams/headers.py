"""What a request repeats in headers, so that a proxy can route by it."""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_PLAIN = re.compile(r"[\x20-\x7E]*\Z")
_WRAPPED = re.compile(r"=\?base64\?.*\?=\Z", re.DOTALL)
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_MARK = "x-mcp-header"
_TYPES = frozenset({"string", "integer", "boolean"})
# Where schemas stand inside of schemas. What is data (`default`, `enum`) is not looked at.
_ONE = frozenset(
    {
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
    }
)
_SEVERAL = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_BY_NAME = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})

Path = tuple[str, ...]


def value(text: str) -> str:
    """A header's value; what no header can hold stands in it as base64."""
    if _PLAIN.match(text) and text == text.strip() and not _WRAPPED.match(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


def repeated(schema: Any) -> dict[Path, str] | None:
    """Which arguments a tool wants in headers, by where they stand; `None` where it says so wrong.

    The protocol has a client leave such a tool out.
    """
    found: dict[Path, str] = {}
    taken: set[str] = set()
    for path, part in _parts(schema):
        if _MARK not in part:
            continue
        token = part[_MARK]
        if not path or type(token) is not str or not _TOKEN.match(token):
            return None
        kind = part.get("type")
        if type(kind) is not str or kind not in _TYPES or token.lower() in taken:
            return None
        taken.add(token.lower())
        found[path] = token
    return found


def of_arguments(wanted: Mapping[Path, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of one call."""
    found: dict[str, str] = {}
    for path, token in wanted.items():
        text = _written(_at(arguments, path))
        if text is not None:
            found[f"Mcp-Param-{token}"] = value(text)
    return found


def _parts(schema: Any) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Every schema in a schema, with the way to it where that leads through `properties` only."""
    waiting: list[tuple[Path | None, Any]] = [((), schema)]
    while waiting:
        path, part = waiting.pop()
        if type(part) is not dict:
            continue
        inner = cast("dict[str, Any]", part)
        yield path, inner
        for word, below in inner.items():
            if word == "properties" and type(below) is dict:
                for name, one in cast("dict[str, Any]", below).items():
                    waiting.append((None if path is None else (*path, name), one))
            elif word in _ONE:
                waiting.append((None, below))
            elif word in _SEVERAL and type(below) is list:
                waiting.extend((None, one) for one in cast("list[Any]", below))
            elif word in _BY_NAME and type(below) is dict:
                waiting.extend((None, one) for one in cast("dict[str, Any]", below).values())


def _at(arguments: Mapping[str, Any], path: Path) -> Any:
    found: Any = arguments
    for name in path:
        if type(found) is not dict:
            return None
        found = cast("dict[str, Any]", found).get(name)
    return found


def _written(given: Any) -> str | None:
    if type(given) is bool:
        return "true" if given else "false"
    if type(given) is str:
        return given
    try:
        return str(given) if type(given) in {int, float} else None
    except ValueError:
        # An integer of thousands of digits.
        return None
