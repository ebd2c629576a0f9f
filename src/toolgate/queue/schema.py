"""What goes through the queue, as JSON Schema: the contract of other systems."""

from collections.abc import Mapping

import msgspec

from toolgate.queue.message import Letter, Request, Result

_KINDS: Mapping[str, type[msgspec.Struct]] = {
    "request": Request,
    "result": Result,
    "dead": Letter,
}


def schemas() -> Mapping[str, str]:
    """By the name of the message, as text."""
    return {name: _text(name, kind) for name, kind in _KINDS.items()}


def _text(name: str, kind: type[msgspec.Struct]) -> str:
    (schema,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"toolgate {name}",
        **schema,
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=2).decode() + "\n"
