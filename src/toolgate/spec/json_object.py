"""A JSON object out of bytes that a caller sent, by whichever door: bounded, and read as meant."""

import json
from typing import Any, cast

import orjson

from toolgate.spec.document import measure

_MAX_NODES = 100_000
_PERHAPS_DEEP = 64


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in these bytes, read as it was meant, or `ValueError` that says why not."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")
    opened, commas = raw.count(b"{") + raw.count(b"["), raw.count(b",")
    if opened > _PERHAPS_DEEP or commas >= _MAX_NODES:
        measure(cast("object", value), max_nodes=_MAX_NODES)
    if orjson.dumps(value) == raw:
        # What comes out as it went in has lost nothing.
        return cast("dict[str, Any]", value)
    # A second look for what the fast parser changes without a word.
    json.loads(raw, object_pairs_hook=_without_twins, parse_int=_exact)
    return cast("dict[str, Any]", value)


def _without_twins(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) != len({name for name, _ in pairs}):
        raise ValueError("has an object with the same name twice; keep one")


def _exact(digits: str) -> None:
    if len(digits) > 18 and not -(1 << 63) <= int(digits[:400]) < 1 << 64:
        raise ValueError("holds a whole number beyond 64 bits; send it as a text")
