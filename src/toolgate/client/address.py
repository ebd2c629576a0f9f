"""Where a server is, and the key it is asked with: both are checked before anything is sent."""

from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from toolgate.errors import InvalidRequest

_MOST_KEY = 8_192


class Address(NamedTuple):
    """The server's address without what could be a secret; `base` is what paths are put behind."""

    base: str
    host: str
    is_encrypted: bool


def read_address(url: object, *, allow_http: bool = False) -> Address:
    """The address of a server, or `InvalidRequest` that says what to write.

    A key is not sent in the clear: `http` is for this machine, unless that is allowed.
    """
    if type(url) is not str:
        raise InvalidRequest("The address of a server is a text: 'https://tools.example.com'.")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidRequest("The address of the server cannot be read; check its port.") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidRequest(
            "The address of a server begins with https://, or http:// on this machine: "
            "'http://127.0.0.1:8700'."
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidRequest(
            "The address of a server has no user, password, query or fragment; "
            "the key is given by itself."
        )
    if parts.scheme == "http" and not (allow_http or is_here(host)):
        raise InvalidRequest(
            f"A key would cross the network in the clear to {host!r}. Use https://, or say "
            "allow_http=True where the network itself keeps it secret."
        )
    shown = f"[{host}]" if ":" in host else host
    place = shown if port is None else f"{shown}:{port}"
    base = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
    return Address(base, host, parts.scheme == "https")


def is_here(host: str) -> bool:
    """Whether only this machine can be meant."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_key(key: object) -> str:
    """A key as it can stand in a header, or `InvalidRequest` that does not repeat it."""
    if type(key) is not str or not key:
        raise InvalidRequest("Give the key of an agent: `toolgate keys add` makes one.")
    if len(key) > _MOST_KEY or not all("!" <= sign <= "~" for sign in key):
        raise InvalidRequest(
            "This is no key: one has visible ASCII characters without spaces. Check for a line end."
        )
    return key
