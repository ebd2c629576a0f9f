"""Which arguments policies may look back at: small plain values, and no secrets."""

import math
from collections.abc import Mapping
from typing import Any, cast

from toolgate.ledger.history import Scalar
from toolgate.spec.redactor import PLAIN, Redactor
from toolgate.spec.secret import secret_names

_MOST_KEYS = 32
_MOST_TEXT = 256
_LEAST, _MOST = -(2**63), 2**64 - 1


def scalars(
    schema: bytes, args: Mapping[str, Any], redactor: Redactor = PLAIN
) -> dict[str, Scalar]:
    """Of a call's arguments those that are kept."""
    hidden = secret_names(schema)
    if hidden is None:
        return {}
    kept: dict[str, Scalar] = {}
    for name, value in args.items():
        if name not in hidden and _is_kept(name) and _is_kept(value):
            kept[name] = redactor.text(value) if type(value) is str else value
            if len(kept) == _MOST_KEYS:
                break
    return kept


def _is_kept(value: object) -> bool:
    """By exact type: anything else may be written otherwise than it looks."""
    kind = type(value)
    if kind is str:
        text = cast("str", value)
        return len(text) <= _MOST_TEXT and (text.isascii() or _is_unicode(text))
    if kind is int:
        return _LEAST <= cast("int", value) <= _MOST
    return kind is bool or (kind is float and math.isfinite(cast("float", value)))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
