"""What a list says of a tool's results: its own schema, and what may come in a result's place.

A client holds each result against what was listed. One that was too large is answered by its head
and a reference, and one that a worker has yet to make by where it will be, whatever the tool says
of it: so the list tells of these forms too; but not in the words of another server.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from toolgate.spec.effect import Execution
from toolgate.spec.export import UNHELD
from toolgate.spec.schema import Schema
from toolgate.spec.tool import ToolSpec

Value = dict[str, Any]
ASIDE: Final[Value] = {
    "type": "object",
    "description": "In place of a result that is too large: its head, and where the rest is read.",
    "properties": {
        "head": {"type": "string"},
        "size": {"type": "integer"},
        "media_type": {"type": "string"},
        "reference": {"type": ["string", "null"]},
        "next": {"type": "integer"},
        "read_with": {"type": "string"},
        "note": {"type": "string"},
    },
    "required": ["head", "size", "media_type", "reference"],
}
PENDING: Final[Value] = {
    "type": "object",
    "description": "In place of a result that is not there yet: the call is queued, and will run.",
    "properties": {
        "status": {"const": "queued"},
        "call_id": {"type": "string"},
        "resource": {"type": "string"},
    },
    "required": ["status", "call_id", "resource"],
}
_ASIDE = Schema.of(ASIDE)
# One of each kind, to find out whether a schema takes them by itself.
_HEAD = {"head": "{", "size": 2, "media_type": "application/json"}
_SAMPLES = (
    _HEAD | {"reference": "out_0", "next": 1, "read_with": "read_output"},
    _HEAD | {"reference": None, "note": "lost"},
)
_QUEUED = ({"status": "queued", "call_id": "call_0", "resource": "toolgate://calls/call_0"},)
# What parts of a schema refer to; it stays at the root, where they look for it.
_SHARED = ("$schema", "$defs", "definitions")
_FOUND = ("#/$defs/", "#/definitions/")
# What another server says of its results is passed on untouched.
RETOLD: Final = frozenset({"mcp"})
# With these a part may mean something else at another place.
_ROOTED = (b'"$id"', b'"$anchor"', b'"$dynamicRef"', b'"$recursiveRef"')


def listed(spec: ToolSpec, *, modern: bool) -> Value | None:
    """The schema for clients, or `None` where they are promised nothing. The older revision knows
    objects only, the newer one any JSON.
    """
    schema = spec.output_schema
    if schema is None or spec.provider in UNHELD:
        return None
    value: object = schema.value()
    if not isinstance(value, dict):
        return None
    found = cast("Value", value)
    kind = found.get("type")
    # A text is shown as it is: to send it twice would tell nobody more.
    if kind == "string" or (kind != "object" and not modern):
        return None
    if spec.provider in RETOLD:
        return found
    forms = [] if all(map(schema.is_valid, _SAMPLES)) else [ASIDE]
    if spec.execution is Execution.QUEUED and not all(map(schema.is_valid, _QUEUED)):
        forms.append(PENDING)
    return _widened(schema.raw, found, forms, is_object=kind == "object") if forms else found


def is_aside(data: Any) -> bool:
    """Whether it stands in the place of a result that is too large."""
    return type(data) is dict and "reference" in data and _ASIDE.is_valid(cast("Value", data))


def held(spec: ToolSpec) -> Callable[[Any], bool] | None:
    """How it is found out whether a result is what its tool says."""
    return None if spec.output_schema is None else spec.output_schema.is_valid


def _widened(raw: bytes, value: Value, forms: list[Value], *, is_object: bool) -> Value | None:
    if any(word in raw for word in _ROOTED) or not _moves(value):
        return None
    shared = {name: value[name] for name in _SHARED if name in value}
    own = {name: part for name, part in value.items() if name not in shared}
    return {**({"type": "object"} if is_object else {}), **shared, "anyOf": [own, *forms]}


def _moves(part: Any) -> bool:
    """Whether all that it refers to is found from another place, too."""
    if isinstance(part, list):
        return all(map(_moves, cast("list[Any]", part)))
    if not isinstance(part, dict):
        return True
    fields = cast("Value", part)
    target = fields.get("$ref")
    if isinstance(target, str) and not target.startswith(_FOUND):
        return False
    return all(map(_moves, fields.values()))
