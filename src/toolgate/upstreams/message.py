"""JSON-RPC as a client writes and reads it."""

from typing import Any, cast

import msgspec
import orjson

from toolgate.errors import InvalidOutput
from toolgate.protocol import INTERNAL_ERROR
from toolgate.text.values import MOST, are_too_many
from toolgate.upstreams.cover import NOTHING, Cover

Json = dict[str, Any]
Id = str | int
_MOST_TEXT = 2_000
# orjson writes nothing deeper than 254.
_SHALLOW = 250
# In the place of a result that nobody could write down.
_TOO_DEEP = object()


class TooManyError(InvalidOutput):
    """A message of so many values that it is not read."""

    def __init__(self) -> None:
        super().__init__(
            f"The tool's server ran it, but answers with more than {MOST:,} values. Ask for less."
        )


class Fault(msgspec.Struct, frozen=True):
    """What a server says instead of a result, in its own words."""

    code: int
    message: str
    data: Any = None


class FaultError(Exception):
    """A fault on its way to whoever asked."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def request(id_: Id, method: str, params: Json) -> bytes:
    """What is answered."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def notification(method: str, params: Json | None = None) -> bytes:
    """What nobody answers."""
    head: Json = {"jsonrpc": "2.0", "method": method}
    return orjson.dumps(head if params is None else head | {"params": params})


def result(id_: Id, value: Json) -> bytes:
    """Our answer to what a server asked."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": value})


def error(id_: Id, fault: Fault) -> bytes:
    """Our answer where there is no result."""
    told = {"code": fault.code, "message": fault.message}
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "error": told})


def parsed(raw: bytes, cover: Cover = NOTHING) -> Any:
    """What a server sent, without what it was given in secret. `TooManyError`, or as orjson."""
    if are_too_many(raw):
        raise TooManyError
    document: Any = orjson.loads(raw)
    if len(raw) > _SHALLOW and raw.count(b"[") + raw.count(b"{") > _SHALLOW:
        try:
            orjson.dumps(document)
        except TypeError:
            return _shallow(document)
    return document if cover.is_empty else cover.over(document, raw)


def read(raw: bytes, cover: Cover = NOTHING) -> Json | None:
    """A message; `None` for what is none."""
    try:
        document = parsed(raw, cover)
    except orjson.JSONDecodeError:
        return None
    if type(document) is not dict:
        return None
    said = cast("Json", document)
    return said if said.get("jsonrpc") == "2.0" else None


def _shallow(document: Any) -> Json:
    """Only to whom it is an answer, and that it cannot be had."""
    if type(document) is not dict or "method" in document:
        return {}
    said = cast("Json", document)
    id_ = said.get("id")
    known = id_ if type(id_) is int or type(id_) is str else None
    return {"jsonrpc": "2.0", "id": known, "result": _TOO_DEEP}


def is_answer(message: Json) -> bool:
    """Whether it answers something that was asked."""
    return "method" not in message and ("result" in message or "error" in message)


def params_of(message: Json) -> Json:
    """What stands in `params`, or nothing."""
    given = message.get("params")
    return cast("Json", given) if type(given) is dict else {}


def meta_of(params: Json) -> Json:
    """What stands in `_meta`, or nothing."""
    given = params.get("_meta")
    return cast("Json", given) if type(given) is dict else {}


def answer_of(message: Json) -> Json:
    """The result, or `FaultError` with what the server says instead."""
    value = message.get("result")
    if type(value) is dict:
        return cast("Json", value)
    if value is _TOO_DEEP:
        raise InvalidOutput(
            "The tool's server ran it, but its answer is nested far too deep to be read."
        )
    raise FaultError(fault_of(message.get("error")))


def fault_of(given: Any) -> Fault:
    """An error as a server sent it; whatever is wrong with it becomes one too."""
    if type(given) is not dict:
        return Fault(INTERNAL_ERROR, "It answered with neither a result nor an error.")
    told = cast("Json", given)
    code, message = told.get("code"), told.get("message")
    return Fault(
        code if type(code) is int else INTERNAL_ERROR,
        message[:_MOST_TEXT] if type(message) is str else "It gave no reason.",
        told.get("data"),
    )
