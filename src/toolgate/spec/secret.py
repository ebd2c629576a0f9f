"""Which arguments are secrets, by what their schema says: writeOnly, secret, format password.

A secret is known by the name of its property. A mark inside an array, a combinator or behind a
reference hides the whole property; where that cannot be told, everything is hidden.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, cast
from urllib.parse import unquote

import orjson

from toolgate.spec.bounds import escaped

# What they hold is about the same value or its items, which have no names of their own.
_ONE = (
    "if", "then", "else", "items", "additionalItems", "unevaluatedItems", "contains",
)  # fmt: skip
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_NAMED = ("dependentSchemas", "dependencies")
# They stand for names that the schema does not tell.
_UNNAMED = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_MOVING = ("$dynamicRef", "$recursiveRef")
# Shorter texts stand in any sentence, whatever the secret is.
LEAST_TEXT = 4
_LEAST_NUMBER = 1_000
_REQUIRED = re.compile(r'("(?:[^"\\]|\\.)*") is a required property')
_UNEXPECTED = re.compile(r"(?:Additional|Unevaluated) properties are not allowed \(")
HIDDEN = "[secret]"
UNTOLD = "this value does not fit (its schema marks it as a secret)"
TEXT_WANTED = "; it is a text: write an object as JSON in a text"
HOLDS = "this value does not fit (it holds a secret and is not shown)"


def without_secrets(schema: bytes, args: Any) -> Any:
    """The arguments as they may be kept: secrets are told only by their names."""
    hidden = secret_names(schema)
    return {} if hidden is None else _covered(args, hidden)


def without_values(
    schema: bytes, args: Any, problems: Sequence[tuple[str, str]]
) -> Sequence[tuple[str, str]]:
    """What does not fit, as (JSON pointer, sentence) pairs that repeat no secret."""
    hidden = secret_names(schema)
    if hidden is None:
        return [_from_schema(schema, *problem) for problem in problems]
    if not hidden:
        return problems
    texts = {text for value in _secrets(args, hidden) for text in _texts(value)}
    return [_untold(schema, args, hidden, texts, *problem) for problem in problems]


def secret_texts(schema: bytes, args: Any) -> frozenset[str]:
    """The texts and numbers of a call that its schema marks as secret, as they may reappear."""
    hidden = secret_names(schema)
    if hidden is None:
        return frozenset(_texts(args))
    if not hidden:
        return frozenset()
    return frozenset(text for value in _secrets(args, hidden) for text in _texts(value))


@lru_cache(maxsize=1_024)
def secret_names(schema: bytes) -> frozenset[str] | None:
    """The properties that are marked as secret, at any depth; `None`: any may be one."""
    root = orjson.loads(schema)
    nodes = list(_objects(root))
    marked = _marked(nodes, root)
    if id(root) in marked:
        return None
    hidden: set[str] = set()
    for node in nodes:
        if any(id(of) in marked for of in _unnamed(node)):
            return None
        hidden.update(name for name, of in _fields(node.get("properties")) if id(of) in marked)
    return frozenset(hidden)


def _covered(value: Any, hidden: frozenset[str]) -> Any:
    if not hidden or value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        named = cast("dict[Any, Any]", value)
        return {
            name: HIDDEN if _is_hidden(name, hidden) else _covered(of, hidden)
            for name, of in named.items()
        }
    if isinstance(value, (list, tuple)):
        return [_covered(of, hidden) for of in cast("list[Any]", value)]
    # No JSON value: what it will be written as is not known here.
    return HIDDEN


def _is_hidden(name: object, hidden: frozenset[str]) -> bool:
    # A member of an enumeration is written as a text that it need not be equal to.
    return type(name) is not str or name in hidden


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


def _marked(nodes: list[dict[str, Any]], root: object) -> set[int]:
    """The objects whose value is a secret, found from the marks backwards: each is seen once."""
    users: dict[int, list[int]] = {}
    waiting: list[int] = []
    for node in nodes:
        if _is_mark(node) or _holds_marks(node.get("contentSchema")):
            waiting.append(id(node))
        for below in _below(node):
            users.setdefault(id(below), []).append(id(node))
        if "$ref" in node:
            target = _at(root, node["$ref"])
            if target is None:
                waiting.append(id(node))
            else:
                users.setdefault(id(target), []).append(id(node))
    marked: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one not in marked:
            marked.add(one)
            waiting += users.get(one, ())
    return marked


def _is_mark(node: dict[str, Any]) -> bool:
    if node.get("writeOnly") is True or node.get("secret") is True:
        return True
    return node.get("format") == "password" or any(key in node for key in _MOVING)


def _holds_marks(written: object) -> bool:
    """Whether a text may hold a secret: no name covers what stands inside of it."""
    return any("$ref" in one or _is_mark(one) for one in _objects(written))


def _below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    found: list[object] = [node.get(key) for key in _ONE]
    for key in _LISTED:
        if isinstance(node.get(key), list):
            found += cast("list[object]", node[key])
    for key in _NAMED:
        found += [of for _, of in _fields(node.get(key))]
    for one in found:
        if isinstance(one, dict):
            yield cast("dict[str, Any]", one)


def _unnamed(node: dict[str, Any]) -> list[object]:
    patterns = [of for _, of in _fields(node.get("patternProperties"))]
    return patterns + [node[key] for key in _UNNAMED if key in node]


def _fields(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from cast("dict[str, object]", value).items()


def _at(root: object, reference: object) -> object:
    """What a reference inside the document points to; `None`: it cannot be followed."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    return _value(root, unquote(reference[1:]))


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _value(root: object, pointer: str) -> object:
    node = root
    for part in _parts(pointer):
        if isinstance(node, dict):
            node = cast("dict[str, object]", node).get(part)
        elif isinstance(node, (list, tuple)) and part.isdecimal():
            items = cast("list[object]", node)
            node = items[int(part)] if int(part) < len(items) else None
        else:
            return None
    return node


def _from_schema(schema: bytes, pointer: str, message: str) -> tuple[str, str]:
    """Only words that stand in the schema itself."""
    known = takewhile(lambda part: _is_said(schema, part), _parts(pointer))
    place = "".join("/" + escaped(part) for part in known)
    return place, message if _is_missing(schema, message) else UNTOLD


def _is_said(schema: bytes, name: str) -> bool:
    try:
        return orjson.dumps(name) in schema
    except TypeError:
        return False


def _is_missing(schema: bytes, message: str) -> bool:
    found = _REQUIRED.fullmatch(message)
    return found is not None and found[1].encode() in schema


def _untold(
    schema: bytes, args: Any, hidden: frozenset[str], texts: set[str], pointer: str, message: str
) -> tuple[str, str]:
    parts = _parts(pointer)
    for index, part in enumerate(parts):
        if part in hidden:
            # What follows are names inside the secret.
            here = parts[: index + 1]
            place = "".join("/" + escaped(one) for one in here)
            return place, UNTOLD + _wanted(schema, args, here)
    if _is_missing(schema, message):
        return pointer, message
    holds = any(True for _ in _secrets(_value(args, pointer), hidden))
    # A message is cut to its length, and with it what it repeats.
    told = _UNEXPECTED.match(message) if holds else True
    return pointer, message if told and not any(text in message for text in texts) else HOLDS


def _wanted(schema: bytes, args: Any, parts: Sequence[str]) -> str:
    """Of a secret that is an object where a text is wanted, so much is told."""
    node, value = orjson.loads(schema), args
    for part in parts:
        node = dict(_fields(node)).get("properties")
        node = dict(_fields(node)).get(part)
        value = dict(_fields(value)).get(part)
    is_text = dict(_fields(node)).get("type") == "string"
    return TEXT_WANTED if is_text and isinstance(value, (dict, list)) else ""


def _secrets(value: object, hidden: frozenset[str]) -> Iterator[object]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            for name, of in cast("dict[str, object]", node).items():
                if _is_hidden(name, hidden):
                    yield of
                else:
                    waiting.append(of)
        elif isinstance(node, (list, tuple)):
            waiting += cast("list[object]", node)


def _texts(secret: object) -> Iterator[str]:
    """The texts and numbers of a secret, as they stand and as JSON writes them."""
    waiting = [secret]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += cast("dict[str, object]", node).values()
        elif isinstance(node, (list, tuple)):
            waiting += cast("list[object]", node)
        elif isinstance(node, str) and len(node) >= LEAST_TEXT:
            yield node
            yield orjson.dumps(node.encode(errors="replace").decode()).decode()[1:-1]
        elif isinstance(node, (int, float)) and abs(node) >= _LEAST_NUMBER:
            # Python refuses to write a number of more than 4,300 digits.
            yield repr(node) if isinstance(node, float) or node.bit_length() < 1_024 else HIDDEN
