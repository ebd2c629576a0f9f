"""What a client can say in headers, where its library gives no way to say it in `_meta`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolgate.server.heads import Heads
from toolgate.server.mcp.answers import KEY
from toolgate.server.mcp.rpc import INVALID_PARAMS, Fault, Message, meta_of
from toolgate.server.mcp.tools import SESSION, TURN_GROUP

_SAID: Mapping[bytes, str] = {
    b"idempotency-key": KEY,
    b"toolgate-turn-group": TURN_GROUP,
    b"toolgate-session": SESSION,
}


def heard(message: Message, heads: Heads) -> Message:
    """The message, with what its headers say. Of two that differ nobody can tell which is meant."""
    headers = heads.found
    if message.method != "tools/call" or _SAID.keys().isdisjoint(headers):
        return message
    for header in _SAID.keys() & heads.repeated:
        raise Fault(
            INVALID_PARAMS,
            f"The header {header.decode()!r} is there twice. Nothing ran: send one.",
        )
    said: dict[str, Any] = {
        name: headers[header].strip().decode("latin-1")
        for header, name in _SAID.items()
        if header in headers
    }
    meta = meta_of(message.params)
    for name, value in said.items():
        if meta.get(name, value) != value:
            raise Fault(
                INVALID_PARAMS,
                f"{name!r} in '_meta' and its header differ, and nobody can say which is meant. "
                "Nothing ran: send one.",
            )
    params = message.params | {"_meta": {**meta, **said}}
    return msgspec.structs.replace(message, params=params)
