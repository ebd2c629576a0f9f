"""An answer that comes in one body."""

from typing import cast

import orjson

from toolgate.upstreams import message
from toolgate.upstreams.cover import NOTHING, Cover
from toolgate.upstreams.failures import BrokenError
from toolgate.upstreams.message import FaultError, Json


def result(id_: int, raw: bytes, cover: Cover = NOTHING) -> Json:
    """The result of this request, or why there is none."""
    try:
        document = message.parsed(raw, cover)
    except orjson.JSONDecodeError:
        raise BrokenError("its answer is no JSON.") from None
    if type(document) is not dict:
        raise BrokenError("its answer is no message.")
    said = cast("Json", document)
    if said.get("id") != id_:
        if type(said.get("error")) is dict and said.get("id") is None:
            raise FaultError(message.fault_of(said["error"]))
        raise BrokenError("its answer is to another request.")
    return message.answer_of(said)
