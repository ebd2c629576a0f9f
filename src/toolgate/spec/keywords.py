"""Keywords of JSON Schema. A mistyped one is no error to a validator: it just says nothing."""

import difflib
from functools import lru_cache
from typing import Any, cast

from toolgate.spec.bounds import subschemas

# Their value holds no schema.
_FLAT = frozenset(
    {
        "$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor",
        "$recursiveRef", "$ref", "$schema", "$vocabulary", "const", "contentEncoding",
        "contentMediaType", "default", "dependentRequired", "deprecated", "description",
        "discriminator", "enum", "example", "examples", "exclusiveMaximum", "exclusiveMinimum",
        "externalDocs", "format", "id", "maxContains", "maxItems", "maxLength", "maxProperties",
        "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
        "multipleOf", "nullable", "pattern", "readOnly", "required", "title", "type",
        "uniqueItems", "writeOnly", "xml",
    }
)  # fmt: skip
_NAMED = frozenset(
    {
        "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties",
        "properties",
    }
)  # fmt: skip
_DEEPER = frozenset(
    {
        "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema",
        "else", "if", "items", "not", "oneOf", "prefixItems", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_KNOWN = _FLAT | _NAMED | _DEEPER
# Near these stand words that people do write: comment, note.
_MEANT = {word.lower(): word for word in _KNOWN - {"$comment", "id", "if", "not", "xml"}}


def check(document: Any) -> None:
    """Refuse a keyword that is nearly one, and arguments that can never fit (`ValueError`)."""
    stack: list[Any] = [document]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):
            continue
        fields = cast("dict[str, Any]", node)
        # Most schemas of a document are leaves.
        if fields.keys() <= _FLAT:
            continue
        for key in fields.keys() - _FLAT:
            if key not in _KNOWN:
                _check_word(key, fields, document)
                continue
            child = fields[key]
            if isinstance(child, list):
                stack.extend(cast("list[Any]", child))
            elif isinstance(child, dict) and key in _NAMED:
                stack.extend(cast("dict[str, Any]", child).values())
            else:
                stack.append(child)
        if fields.get("additionalProperties") is False:
            _check_required(fields, document)


def _check_word(key: str, fields: dict[str, Any], document: Any) -> None:
    meant = None if key.startswith("x-") else _nearest(key[:64])
    if meant is not None:
        where = _where(fields, document)
        raise ValueError(
            f"has the unknown keyword {key[:64]!r} at {where}; did you mean {meant!r}?"
        )


def _check_required(fields: dict[str, Any], document: Any) -> None:
    if "patternProperties" in fields or "$ref" in fields:
        return
    required = fields.get("required")
    # In draft 3 and in much that follows none, `required` is true or false.
    if not isinstance(required, list):
        return
    missing = set(cast("list[str]", required)) - fields.get("properties", {}).keys()
    if missing:
        name = min(missing)[:60]
        raise ValueError(
            f"requires {name!r} at {_where(fields, document)}, which properties lacks and "
            "additionalProperties: false forbids"
        )


@lru_cache(maxsize=1024)
def _nearest(key: str) -> str | None:
    lower = key.lower()
    close = difflib.get_close_matches(lower, _MEANT, n=1, cutoff=0.82)
    if not close:
        # Two letters that changed places in a short word leave it far apart.
        close = [word for word in _MEANT if sorted(word) == sorted(lower)]
    return _MEANT[close[0]] if close else None


def _where(fields: dict[str, Any], document: Any) -> str:
    places = (where for where, found in subschemas(document) if found is fields)
    return next(places, "") or "/"
