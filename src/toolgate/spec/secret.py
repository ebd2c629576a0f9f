"""Which arguments are secrets, by what their schema says: writeOnly, secret, format password."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import orjson

_FOLLOWED = 8
_EITHER = ("allOf", "anyOf", "oneOf")
# They stand for names that the schema does not tell.
_UNNAMED = ("additionalProperties", "unevaluatedProperties", "propertyNames")
HIDDEN = "[secret]"


def without_secrets(schema: bytes, args: Any) -> Any:
    """The arguments as they may be kept: secrets are told only by their names."""
    hidden = secret_names(schema)
    return {} if hidden is None else _covered(args, hidden)


def _covered(value: Any, hidden: frozenset[str]) -> Any:
    if not hidden:
        return value
    if isinstance(value, dict):
        named = cast("dict[Any, Any]", value)
        return {
            name: HIDDEN if name in hidden else _covered(of, hidden) for name, of in named.items()
        }
    if isinstance(value, list):
        return [_covered(of, hidden) for of in cast("list[Any]", value)]
    return value


@lru_cache(maxsize=1_024)
def secret_names(schema: bytes) -> frozenset[str] | None:
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
