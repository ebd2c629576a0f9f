"""What a service sends back of the credentials that it was sent is not passed on."""

from base64 import b64encode
from collections.abc import Iterable
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
