"""Which calls are the same piece of business: the key, whose it is, and what it was used for."""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

import msgspec
import orjson

from toolgate.call import Call
from toolgate.errors import InvalidRequest
from toolgate.ledger.history import owner_of
from toolgate.spec.document import sha256
from toolgate.spec.redactor import PLAIN, Redactor

_MOST_KEY = 255
_MOST_WAIT = 600
# Whole numbers up to here are the same as the float that JSON may write for them.
_EXACT = 2.0**53
# Where a number may be a float; a text that looks like one does no harm.
_FLOAT = re.compile(rb"\d[.eE]")

# No caller's own key has a space.
_AGAIN = "again "


class Claim(msgspec.Struct, frozen=True):
    """`scope` says whose it is; `key` is empty where a call is its own business."""

    scope: str
    key: str
    digest: str


def check_key(key: object) -> str:
    """A caller's own key, or `InvalidRequest`."""
    if type(key) is not str:
        raise InvalidRequest(f"An idempotency key is a text, not a {type(key).__name__}.")
    if not 0 < len(key) <= _MOST_KEY or not all("!" <= sign <= "~" for sign in key):
        raise InvalidRequest(
            f"An idempotency key has 1 to {_MOST_KEY} visible ASCII characters, without spaces. "
            "Nothing ran."
        )
    return key


def again_key(first: str, call_id: str, number: int, reason: str) -> str:
    """The key of a call that an operator runs again; `first`: what the far side knows it by.

    Of those who make the same attempt for different reasons, the store lets one have it: the
    reason is no part of what is claimed, but of what it is claimed for.
    """
    return f"{_AGAIN}{first} {call_id} {number} {reason}"


def number_of(key: str) -> int | None:
    """Which attempt it is, of a call that an operator runs again; nothing where its key is free."""
    number = key.rpartition(" ")[2]
    return int(number) if key.startswith(_AGAIN) and number.isdecimal() else None


def reason_of(digest: str) -> str:
    """What an operator ran it again for; empty of calls that nobody did."""
    return digest.partition(" ")[2]


def first_of(key: str) -> str:
    """What the far side knows it by, of a call that an operator runs again; empty of others."""
    return key.split(" ")[1] if key.startswith(_AGAIN) else ""


def check_wait(seconds: object) -> float:
    """How long a caller waits, or `InvalidRequest`."""
    is_number = type(seconds) is int or (type(seconds) is float and math.isfinite(seconds))
    if not is_number or not 0 <= cast("float", seconds) <= _MOST_WAIT:
        raise InvalidRequest(f"'wait_s' is a number of seconds from 0 to {_MOST_WAIT}.")
    return float(cast("float", seconds))


def claim_of(call: Call, raw: bytes, redactor: Redactor = PLAIN) -> Claim:
    """The call's claim, which holds no secret; `raw` is its arguments as JSON."""
    spec, owner = call.grant.spec, owner_of(call.grant.caller)
    args = canonical_args(raw)
    if call.asked.undo_of:
        # One undo for each call, whatever its tool has become since the first attempt.
        taking_back = sha256(b"\0".join((spec.name.encode(), args)))
        return Claim(f"{owner}/undo", call.asked.undo_of, taking_back)
    defaults = _defaults(spec.input_schema.raw)
    if any(name not in call.args for name in defaults):
        # The tool fills them in itself: written out or left out, it is the same call.
        args = canonical_args(orjson.dumps({**defaults, **orjson.loads(raw)}))
    digest = sha256(b"\0".join((spec.name.encode(), spec.fingerprint.encode(), args)))
    if call.asked.again_of and call.asked.key.startswith(_AGAIN):
        key, _, reason = call.asked.key.rpartition(" ")
        return Claim(f"{owner}/key", key, f"{digest} {reason}")
    if call.asked.key:
        return Claim(f"{owner}/key", _without_secrets(call.asked.key, redactor), digest)
    if call.turn is None:
        # One that was queued may be brought twice.
        return Claim(f"{owner}/call", call.asked.delivered, digest)
    business = _business_key(call, defaults) if spec.idempotency_key else sha256(args)[7:39]
    return Claim(f"{owner}/turn", f"{spec.name}:{business}:turn_group:{call.turn.group}", digest)


@lru_cache(maxsize=1_024)
def _defaults(schema: bytes) -> dict[str, object]:
    """What the schema says of arguments that are left out; only of those at the top."""
    document: object = orjson.loads(schema)
    listed = cast("dict[str, object]", document).get("properties") if _is_dict(document) else None
    if not isinstance(listed, dict):
        return {}
    properties = cast("dict[str, object]", listed)
    return {
        name: cast("dict[str, object]", of)["default"]
        for name, of in properties.items()
        if isinstance(of, dict) and "default" in of
    }


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def canonical_args(raw: bytes) -> bytes:
    """The one form of arguments that mean the same: sorted keys, and 1.0 is 1."""
    value = orjson.loads(raw)
    if _FLOAT.search(raw) is not None:
        value = _whole(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _whole(value: object) -> object:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, dict):
        return {name: _whole(of) for name, of in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_whole(of) for of in cast("list[object]", value)]
    return value


def _business_key(call: Call, defaults: Mapping[str, object]) -> str:
    """A digest of the values that name the business, whatever they are.

    They may hold secrets that no schema marks, and be longer than a key can be.
    """
    given = {**defaults, **call.args}
    words = (_word(_whole(given.get(field, ""))) for field in call.grant.spec.idempotency_key)
    # Escaped, so that no two lists of values make the same key.
    together = ":".join([word.replace("%", "%25").replace(":", "%3A") for word in words])
    return sha256(together.encode("utf-8", "backslashreplace"))[7:39]


def _without_secrets(key: str, redactor: Redactor) -> str:
    """A caller's own key, or its digest where it holds a secret."""
    return key if redactor.text(key) == key else sha256(key.encode())


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
