"""What a service sends back of the credentials that it was sent is not passed on."""

from base64 import b64encode
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from toolgate.spec.secret import HIDDEN, LEAST_TEXT

_HIDDEN = HIDDEN.encode()


def forms(texts: Iterable[str]) -> tuple[bytes, ...]:
    """How texts may stand in an answer: as they are, in JSON, in an address, in base64."""
    found: set[str] = set()
    for text in texts:
        if len(text) < LEAST_TEXT:
            continue
        escaped = orjson.dumps(text).decode()[1:-1]
        found |= {text, escaped, escaped.replace("/", "\\/"), quote(text, safe="")}
        found |= {quote_plus(text), b64encode(text.encode()).decode()}
    # The longest first, so that none hides the rest of one that it begins.
    return tuple(one.encode() for one in sorted(found, key=len, reverse=True))


def without(body: bytes, hidden: tuple[bytes, ...]) -> bytes:
    """The body without any of these. One that holds none is handed back as it is."""
    for one in hidden:
        if one in body:
            body = body.replace(one, _HIDDEN)
    return body


def without_begun(body: bytes, hidden: tuple[bytes, ...]) -> bytes:
    """The body without what one of these begins with at its end, where it was cut off."""
    at = min((_begun(body, one) for one in hidden), default=len(body))
    return body if at == len(body) else body[:at] + _HIDDEN


def value_without(value: Any, raw: bytes, hidden: tuple[bytes, ...]) -> Any:
    """The value that was read from this JSON without any of these; `TypeError` where it is far too
    deep.
    """
    if not hidden or b"\\" not in raw:
        return value
    # Written in another way, it is the same secret.
    return orjson.loads(without(orjson.dumps(value), hidden))


def _begun(body: bytes, one: bytes) -> int:
    """From where on the body is how this begins, and nothing else; its end where it is not."""
    begins, at = one[:LEAST_TEXT], max(0, len(body) - len(one) + 1)
    while (at := body.find(begins, at)) >= 0:
        if one.startswith(body[at:]):
            return at
        at += 1
    return len(body)
