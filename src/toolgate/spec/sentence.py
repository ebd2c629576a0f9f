"""What does not fit a schema, as a sentence that also says what would."""

import difflib
from typing import Any, cast

import orjson

from toolgate.spec.bounds import shortened

# What is allowed is told whole where it is not too long to be read.
_MOST_WORDS = 400
_MOST_LOOKED = 1_000


def sentence(error: Any, document: Any) -> str:
    """Of one error of the validator's, in the document that it comes from."""
    message = shortened(error.message)
    kind = error.kind
    if kind.name == "enum":
        return _one_of(message, error.instance, kind.options)
    if kind.name == "type" and isinstance(error.instance, (dict, list)):
        return message + _as_text(kind.types)
    if kind.name == "additionalProperties":
        return message + _known(error, document)
    return message


def _as_text(types: list[str]) -> str:
    return "; write it as JSON in a text" if types == ["string"] else ""


def _one_of(message: str, given: Any, options: list[Any]) -> str:
    """All that it could be, where the validator tells the first few."""
    if not message.endswith(" other candidates"):
        return message
    listed = ", ".join(orjson.dumps(one).decode() for one in options[:_MOST_WORDS])
    if len(listed) <= _MOST_WORDS:
        before = orjson.dumps(options[0]).decode()
        head, found, _rest = message.partition(f" is not one of {before}")
        return f"{head} is not one of {listed}" if found else message
    texts = [one for one in options[:_MOST_LOOKED] if isinstance(one, str)]
    near = difflib.get_close_matches(given, texts, n=1) if isinstance(given, str) else []
    return f"{message}; did you mean {near[0]!r}?" if near else message


def _known(error: Any, document: Any) -> str:
    """The names that there are, seen from where the schema forbids others."""
    node = document
    for part in error.schema_path[:-1]:
        if isinstance(node, dict):
            node = cast("dict[Any, Any]", node).get(part)
        elif isinstance(node, list) and isinstance(part, int):
            node = cast("list[Any]", node)[part]
        else:
            return ""
    if not isinstance(node, dict):
        return ""
    names = cast("dict[str, Any]", node).get("properties")
    if not isinstance(names, dict) or not names:
        return ""
    listed = ", ".join(map(repr, cast("dict[str, Any]", names)))
    return f"; known: {listed}" if len(listed) <= _MOST_WORDS else ""
