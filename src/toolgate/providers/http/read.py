"""How the config of a tool is read: `ValueError` says which part is wrong, and what to write."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from toolgate.spec import fields as spec_fields

T = TypeVar("T")
Keys = Mapping[str, Callable[[Any], Any]]
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
# Theirs is the client's word: who is spoken to, how long the body is, when a connection ends.
_OURS = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
    "upgrade", "expect", "proxy-authorization", "proxy-connection", "accept-encoding",
})  # fmt: skip
_SECRET = {
    "authorization": "auth: {kind: bearer, secret: NAME}",
    "cookie": "cookies: {NAME: VALUE}",
}

text = spec_fields.text(8_192)
fields = spec_fields.fields_of
only = spec_fields.only
count = spec_fields.count
number = spec_fields.number
flag = spec_fields.flag


def at(place: str, read: Callable[[], T]) -> T:
    """Read a part; what is wrong with it is told with its place."""
    try:
        return read()
    except ValueError as error:
        message = str(error)
        between = "" if message.startswith((".", "[")) else " "
        raise ValueError(f"{place}{between}{message}") from None


def word(*choices: str) -> Callable[[Any], str]:
    """One of a few."""

    def read(value: Any) -> str:
        if value not in choices:
            shown = repr(value[:60]) if isinstance(value, str) else spec_fields.kind(value)
            raise ValueError(f"is {shown}, not one of {', '.join(choices)}")
        return value

    return read


def listed(value: Any, most: int) -> list[Any]:
    """A list of at most so many."""
    if not isinstance(value, list):
        raise ValueError(f"is {spec_fields.kind(value)}, not a list")
    items = cast("list[Any]", value)
    if len(items) > most:
        raise ValueError(f"has {len(items):,} entries; at most {most:,} are taken")
    return items


def token(value: Any) -> str:
    """A name of a header or a cookie."""
    given = text(value)
    if not _TOKEN.match(given):
        raise ValueError(f"is {given[:60]!r}, which is no name: letters, digits and -")
    return given


def header_name(value: Any) -> str:
    """A header that a tool may set."""
    name = credential_header(value)
    if name.lower() in _SECRET:
        raise ValueError(f"is {name}; write {_SECRET[name.lower()]} instead")
    return name


def credential_header(value: Any) -> str:
    """A header that credentials may stand in."""
    name = token(value)
    if name.lower() in _OURS:
        raise ValueError(f"is {name}, which the client sets; leave it out")
    return name
