"""JSON-RPC as MCP speaks it: messages in and out, and the codes of its faults."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import orjson

from toolgate.protocol import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
)

__all__ = [
    "CANCELLED",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "PARSE_ERROR",
    "REFUSED",
    "RESOURCE_NOT_FOUND",
    "STATUS",
    "UNSUPPORTED_VERSION",
    "Fault",
    "Id",
    "Message",
    "Params",
    "fault",
    "mapping",
    "meta_of",
    "notification",
    "read",
    "request",
    "result",
    "text",
]

# Ours: the door did not open.
REFUSED = -32000
# Of the older revision only.
CANCELLED = -32800

# What HTTP says beside the fault's own code; 200 for any other.
STATUS: Mapping[int, int] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}

Id = str | int | None
Params = dict[str, Any]


class Fault(Exception):
    """What goes back instead of a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Message(msgspec.Struct, frozen=True):
    """One that came in. A notification has no `id`; an answer has no `method`."""

    id: Id
    method: str
    params: Params
    is_request: bool
    # Of an answer to what we asked: its result, or why there is none.
    result: Any = None
    error: Any = None

    @property
    def is_answer(self) -> bool:
        """Whether it answers one of our own requests."""
        return not self.method


def read(document: Any) -> Message:
    """A message, or the fault that says why it is none."""
    if not isinstance(document, dict):
        raise Fault(INVALID_REQUEST, "Send one JSON-RPC message: batches are not taken.")
    given = cast("dict[str, Any]", document)
    id_, method, params = given.get("id"), given.get("method"), given.get("params")
    has_id = "id" in given
    # A bool is an int to Python, and no id.
    fits = type(id_) is int or type(id_) is str if has_id else True
    if given.get("jsonrpc") != "2.0" or not fits:
        raise Fault(INVALID_REQUEST, "This is not a JSON-RPC 2.0 message.")
    if method is None and has_id and ("result" in given or "error" in given):
        said = given.get("result"), given.get("error")
        return Message(id_, "", {}, is_request=False, result=said[0], error=said[1])
    if type(method) is not str or not method:
        raise Fault(INVALID_REQUEST, "A JSON-RPC message names its method.")
    if params is None:
        params = {}
    elif type(params) is not dict:
        raise Fault(INVALID_PARAMS, "'params' is an object.")
    return Message(id_, method, cast("Params", params), has_id)


def meta_of(params: Params) -> dict[str, Any]:
    """What stands in `_meta`; nothing where there is none."""
    meta = params.get("_meta")
    if meta is None:
        return {}
    if not isinstance(meta, dict):
        raise Fault(INVALID_PARAMS, "'_meta' is an object.")
    return cast("dict[str, Any]", meta)


def result(id_: Id, value: Any) -> bytes:
    """The answer to a request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": value})


def fault(id_: Id, error: Fault) -> bytes:
    """The answer where there is no result."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    # Where nobody can tell the id, there is none.
    head: dict[str, Any] = {"jsonrpc": "2.0"} if id_ is None else {"jsonrpc": "2.0", "id": id_}
    return orjson.dumps(head | {"error": told}, default=repr)


def notification(method: str, params: Params) -> bytes:
    """What nobody answers."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def request(id_: Id, method: str, params: Params) -> bytes:
    """What the client is asked."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def text(params: Params, name: str) -> str:
    """A text that has to be there."""
    given = params.get(name)
    if type(given) is not str or not given:
        raise Fault(INVALID_PARAMS, f"{name!r} is a text, and has to be there.")
    return given


def mapping(params: Params, name: str) -> dict[str, Any]:
    """An object, or an empty one where it is left out."""
    given = params.get(name)
    if given is None:
        return {}
    if type(given) is not dict:
        raise Fault(INVALID_PARAMS, f"{name!r} is an object.")
    return cast("dict[str, Any]", given)
