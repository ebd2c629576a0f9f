"""Which arguments policies may look back at: small plain values, and no secrets."""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

import orjson

from toolgate.ledger.history import Scalar

_MOST_KEYS = 32
_MOST_TEXT = 256
_LEAST, _MOST = -(2**63), 2**64 - 1
_FOLLOWED = 8
_EITHER = ("allOf", "anyOf", "oneOf")
# They stand for names that the schema does not tell.
_UNNAMED = ("additionalProperties", "unevaluatedProperties", "propertyNames")


def scalars(schema: bytes, args: Mapping[str, Any]) -> dict[str, Scalar]:
    """Of a call's arguments those that are kept."""
    hidden = _hidden_names(schema)
    if hidden is None:
        return {}
    kept: dict[str, Scalar] = {}
    for name, value in args.items():
        if name not in hidden and _is_kept(name) and _is_kept(value):
            kept[name] = value
            if len(kept) == _MOST_KEYS:
                break
    return kept


def _is_kept(value: object) -> bool:
    """By exact type: anything else may be written otherwise than it looks."""
    kind = type(value)
    if kind is str:
        text = cast("str", value)
        return len(text) <= _MOST_TEXT and (text.isascii() or _is_unicode(text))
    if kind is int:
        return _LEAST <= cast("int", value) <= _MOST
    return kind is bool or (kind is float and math.isfinite(cast("float", value)))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=1_024)
def _hidden_names(schema: bytes) -> frozenset[str] | None:
    """The properties that are marked as secret, at any depth; `None`: any may be one."""
    root = orjson.loads(schema)
    hidden: set[str] = set()
    for node in _objects(root):
        named = node.get("properties")
        if isinstance(named, dict):
            properties = cast("dict[str, object]", named)
            hidden.update(name for name, of in properties.items() if _is_hidden(of, root))
        patterns = node.get("patternProperties")
        others = list(cast("dict[str, object]", patterns).values()) if patterns else []
        others += [node[key] for key in _UNNAMED if key in node]
        if any(_is_hidden(of, root) for of in others):
            return None
    return frozenset(hidden)


def _objects(root: object) -> Iterator[dict[str, Any]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            inside = cast("dict[str, Any]", node)
            yield inside
            waiting += inside.values()
        elif isinstance(node, list):
            waiting += cast("list[object]", node)


def _is_hidden(schema: object, root: object, steps: int = 0) -> bool:
    """Whether a value of this schema is a secret; what leads too far is taken for one."""
    if not isinstance(schema, dict):
        return False
    if steps > _FOLLOWED:
        return True
    node = cast("dict[str, Any]", schema)
    if node.get("writeOnly") is True or node.get("secret") is True:
        return True
    if node.get("format") == "password":
        return True
    below = [one for key in _EITHER for one in node.get(key) or ()]
    if "$ref" in node:
        below.append(_at(root, node["$ref"]))
    return any(_is_hidden(one, root, steps + 1) for one in below)


def _at(root: object, reference: object) -> object:
    """What a reference inside the document points to; one that cannot be followed hides."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return {"secret": True}
    node = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        node = cast("dict[str, object]", node).get(name) if isinstance(node, dict) else None
    return {"secret": True} if node is None else node
