"""Results that are there to be looked at: which field of one is a text to be shown as it is.

An output schema says so itself: a property of `contentMediaType: text/plain` is a plot or a formula
and no value among others.
"""

from functools import lru_cache
from typing import Any, NamedTuple, cast

import orjson

from toolgate.spec.schema import Schema

TEXT = "text/plain"
SIXEL = "image/x-sixel"
_SIGN = b'"contentMediaType"'


class Drawn(NamedTuple):
    """The field, and what stands in it."""

    field: str
    kind: str


def drawn(schema: Schema | None) -> Drawn | None:
    """What of a result is to be looked at; nothing for most tools."""
    if schema is None or _SIGN not in schema.raw:
        return None
    return _found(schema.raw)


@lru_cache(maxsize=256)
def _found(raw: bytes) -> Drawn | None:
    properties: Any = orjson.loads(raw).get("properties")
    if not isinstance(properties, dict):
        return None
    for name, one in cast("dict[str, Any]", properties).items():
        kind = cast("dict[str, Any]", one).get("contentMediaType") if isinstance(one, dict) else ""
        if kind in (TEXT, SIXEL):
            return Drawn(name, kind)
    return None
