"""Where an answer leads on, and what of a request may go there."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urljoin

from toolgate.net.address import shown
from toolgate.net.credential import Credential
from toolgate.net.errors import Lost, NotAllowed
from toolgate.net.location import Location, read

_MOVED = frozenset({301, 302, 303, 307, 308})
# The same request again, with its body.
_SAME = frozenset({307, 308})
# What tells nothing about who asks; any other header can be a secret of the first host.
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_OF_A_BODY = frozenset({"content-type", "content-language", "content-location"})


class Request(NamedTuple):
    """What is asked, here or at the next address."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    credentials: Sequence[Credential]


def onward(asked: Request, status: int, headers: Mapping[str, str]) -> Request | None:
    """The next request where the answer is a redirect; nothing where it is the answer."""
    where = headers.get("Location", "")
    if status not in _MOVED or not where:
        return None
    try:
        url = urljoin(asked.url, where)
        here, there = read(asked.url), read(url)
    except ValueError:
        raise Lost(f"{shown(asked.url)} leads to what is no address.") from None
    except NotAllowed as refused:
        raise Lost(elsewhere(asked.url, refused.message)) from None
    if here.scheme == "https" and there.scheme != "https":
        raise Lost(f"{shown(asked.url)} leads from https to http, which is not followed.")
    method, body, kept = asked.method, asked.body, dict(asked.headers)
    if status not in _SAME and method not in {"GET", "HEAD"}:
        method, body = "GET", None
        kept = {name: value for name, value in kept.items() if name.lower() not in _OF_A_BODY}
    credentials = asked.credentials
    if not _is_same(here, there):
        if body:
            raise Lost(
                f"{shown(asked.url)} wants the request sent to another host, which is not done."
            )
        kept = {name: value for name, value in kept.items() if name.lower() in _HARMLESS}
        credentials = ()
    return Request(method, url, kept, body, credentials)


def elsewhere(url: str, why: str) -> str:
    """Why a request goes no further, though its first address has had it."""
    told = why.replace("Nothing was sent.", "Nothing was sent there.")
    return f"{shown(url)} was asked, and leads elsewhere. {told}"


def _is_same(one: Location, other: Location) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)
