"""Only pages that belong here: what a browser sends for a page elsewhere is refused.

Whoever is no browser says nothing of an origin, and is asked for a key like everybody.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from toolgate.settings.settings import Server

Header = tuple[bytes, bytes]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^\[\]:@/\s?#]+)(?::(\d{1,5}))?\Z")
_PORTS = {"http": "80", "https": "443"}
_ASKED = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}\Z")
_USUAL = b"authorization, content-type"
_METHODS = b"GET, POST, PUT, DELETE"
# What a page may read of an answer, beside what it always may.
_EXPOSED = (
    b"etag, link, location, mcp-session-id, mcp-protocol-version, retry-after, www-authenticate"
)


class Origins:
    """Which pages may ask: our own, and those that the settings name."""

    def __init__(self, server: Server) -> None:
        self._named = frozenset(filter(None, map(_plain, server.allowed_origins)))
        public = urlsplit(server.public_url)
        self._own = _plain(f"{public.scheme}://{public.netloc}") if server.public_url else None

    def lets(self, origin: bytes | None, host: bytes | None) -> bool:
        """Whether the request is no browser's, or comes from a page that may ask.

        The host has been checked: a page at that very address is our own.
        """
        if origin is None:
            return True
        page = _plain(origin.decode("latin-1"))
        if page is None:
            return False
        if page == self._own or page in self._named:
            return True
        own = (host or b"").decode("latin-1")
        return page in {_plain(f"http://{own}"), _plain(f"https://{own}")}

    def shared(self, origin: bytes | None) -> tuple[Header, ...]:
        """What tells a browser that a page from elsewhere may read the answer; else nothing."""
        if origin is None or _plain(origin.decode("latin-1")) not in self._named:
            return ()
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        )

    @staticmethod
    def preflight(scope: MutableMapping[str, Any]) -> tuple[Header, ...]:
        """What a page may send, asked before it does; nothing where that is not what is asked."""
        headers: Iterable[Header] = scope["headers"]
        asked = {name: value for name, value in headers if name.startswith(b"access-control-")}
        if b"access-control-request-method" not in asked:
            return ()
        wanted = asked.get(b"access-control-request-headers", _USUAL)
        return (
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", wanted if _ASKED.match(wanted) else _USUAL),
            (b"access-control-max-age", b"600"),
        )


def sharing(send: Send, headers: tuple[Header, ...]) -> Send:
    """The same way back, with these headers on whatever goes."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return sent


def _plain(origin: str) -> str | None:
    """Scheme, host and port, in one spelling; `null` and whatever is no origin is none."""
    found = _ORIGIN.match(origin.lower())
    if found is None:
        return None
    scheme, host, port = found.groups()
    return f"{scheme}://{host}:{port or _PORTS[scheme]}"
