"""Only requests that were meant for us: a page elsewhere cannot reach a server on this machine by
letting its own name point here.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from toolgate.settings.settings import Server

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_HOSTS = 64
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/\s]+))(?::\d{1,5})?\Z")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_check(server: Server) -> Callable[[bytes | None], bool]:
    """Whether a Host header names this server."""
    allowed = set(_LOCAL)
    if server.public_url:
        allowed.add((urlsplit(server.public_url).hostname or "").lower())
    if server.host not in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
        allowed.add(server.host.lower())

    # Nearly all requests say the same; what somebody makes up must not fill the memory.
    @lru_cache(_MOST_HOSTS)
    def is_ours(header: bytes | None) -> bool:
        if header is None:
            return False
        named = _HOST.match(header.decode("latin-1").lower())
        return named is not None and (named[1] or named[2]) in allowed

    return is_ours
