"""Where the operations of a document are: its servers, as whole addresses."""

import re
from typing import Any, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

from toolgate.sources.openapi import older
from toolgate.sources.openapi.opened import Opened
from toolgate.sources.openapi.operations import Operation
from toolgate.sources.openapi.prose import printable

_VARIABLE = re.compile(r"\{([^{}]{1,200})\}")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\Z")
# What may stand in a path as it is; the rest is encoded.
_PLAIN = "/-._~!$&'()*+,;=:@%"
_MAX_LENGTH = 2_000
_HERE = frozenset({"localhost", "::1"})


class NoServer(Exception):
    """The document says nowhere, or nothing usable, about where its operations are."""


class Servers:
    """The address of each operation; what the operator gave stands above all."""

    def __init__(self, opened: Opened, *, address: str = "", given: str = "") -> None:
        """`address`: where the document itself was, which relative servers start from."""
        is_old = opened.version == "2.0"
        self._all = older.servers(opened.value) if is_old else opened.value.get("servers")
        self._address = address
        self._given = base(given) if given else ""
        self._known: dict[str, str] = {}

    def of(self, operation: Operation) -> str:
        """The address that its path is below, or `NoServer`."""
        if self._given:
            return self._given
        own = operation.fields.get("servers") or operation.shared.get("servers") or self._all
        listed = cast("list[Any]", own) if isinstance(own, list) and own else [{"url": "/"}]
        problem, first = "", ""
        for server in listed:
            try:
                found = self._one(server)
            except NoServer as error:
                problem = problem or str(error)
                continue
            first = first or found
            # The same place, but not for everybody to read.
            if found == f"https://{first.partition('://')[2]}":
                return found
        if first:
            return first
        raise NoServer(problem)

    def _one(self, server: Any) -> str:
        fields = cast("dict[str, Any]", server) if isinstance(server, dict) else {}
        url = fields.get("url")
        if not isinstance(url, str):
            raise NoServer("its server has no address")
        named = fields.get("variables")
        variables = cast("dict[str, Any]", named) if isinstance(named, dict) else {}
        written = _VARIABLE.sub(lambda found: _default(variables, found[1]), url[:_MAX_LENGTH])
        if written not in self._known:
            self._known[written] = base(self._whole(written))
        return self._known[written]

    def _whole(self, url: str) -> str:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", url):
            return url
        if not self._address:
            raise NoServer(
                f"its server {printable(url, 60)!r} is relative to where the document was; say "
                "which one with --server URL"
            )
        return urljoin(self._address, url)


def _default(variables: dict[str, Any], name: str) -> str:
    told = variables.get(name)
    value = cast("dict[str, Any]", told).get("default") if isinstance(told, dict) else None
    if not isinstance(value, (str, int)) or value == "":
        raise NoServer(
            f"its server needs {printable(name, 60)!r}, which has no default; say the whole "
            "address with --server URL"
        )
    return str(value)


def base(url: str) -> str:
    """An address that operations can be below, or `NoServer`."""
    shown = printable(url, 80)
    try:
        parts = urlsplit(url.strip())
        host = parts.netloc
    except ValueError:
        raise NoServer(f"its server {shown!r} is no address") from None
    if parts.scheme not in {"http", "https"} or not _HOST.match(host):
        raise NoServer(f"its server {shown!r} is no address such as https://HOST/PATH")
    if parts.query or parts.fragment:
        raise NoServer(f"its server {shown!r} has a query or a fragment")
    if not {".", ".."}.isdisjoint(unquote(unquote(parts.path)).split("/")):
        raise NoServer(f"its server {shown!r} has . or .. in its path")
    return f"{parts.scheme}://{host.lower()}{encoded(parts.path).rstrip('/')}"


def is_clear(url: str) -> bool:
    """Whether everybody on the way can read what is sent there."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return url.startswith("http://") and host not in _HERE and not host.startswith("127.")


def encoded(path: str) -> str:
    """The literal part of a path as it goes over the wire."""
    return quote(path, safe=_PLAIN, errors="replace")
