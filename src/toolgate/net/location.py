"""A URL, read once by one strict reader; what is connected to is what was checked."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple

from toolgate.net.addresses import Address
from toolgate.net.errors import NotAllowed

_MOST = 8_192
# Nothing that any reader of URLs takes for something else: no space, no control character, no
# backslash, no letter beyond ASCII.
_SAFE = re.compile(r"[!\"$-\[\]-~#]+\Z")
_PARTS = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?\Z", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?\Z")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
# A last label like that makes resolvers read the whole name as a number.
_NUMBER = re.compile(r"[0-9]+\Z|0x[0-9a-f]*\Z")
_PORTS = {"http": 80, "https": 443}


class Location(NamedTuple):
    """Where a URL leads. `address` is there where the host is written as one."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header has them."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """Host and port as the settings have them."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return f"{host}:{self.port}"


def read(url: str) -> Location:
    """The parts of a URL, or `NotAllowed` with what is wrong with it. It is never shown."""
    if len(url) > _MOST:
        raise _wrong(f"is longer than {_MOST:,} characters")
    if not _SAFE.match(url):
        raise _wrong(
            "has a space, a backslash, a control character or a letter beyond ASCII: write those "
            "as %XX, and a host as xn--…"
        )
    parts = _PARTS.match(url)
    if parts is None:
        raise _wrong("does not begin with http:// or https:// and a host")
    scheme, authority, path = parts[1].lower(), parts[2], parts[3]
    if "@" in authority:
        raise _wrong("has a user or a password in it: give them as a secret")
    found = _AUTHORITY.match(authority)
    if found is None:
        raise _wrong("names no host that can be read")
    port = int(found[2]) if found[2] else _PORTS[scheme]
    if not 1 <= port <= 65_535:
        raise _wrong("has a port that does not exist")
    if not path.startswith("/"):
        path = f"/{path}"
    host, address = read_host(found[1])
    return Location(scheme, host, port, path, address)


def read_host(given: str) -> tuple[str, Address | None]:
    """A host in its one notation, and its address where it is written as one."""
    if given.startswith("["):
        try:
            six = IPv6Address(given[1:-1])
        except AddressValueError:
            raise _wrong("has an IPv6 address that cannot be read") from None
        return str(six), six
    host = given.lower()
    labels = host.split(".")
    if _NUMBER.match(labels[-1]):
        try:
            four = IPv4Address(host)
        except AddressValueError:
            raise _wrong(
                "has an address in a notation that is read in several ways: write it as four "
                "decimal numbers"
            ) from None
        return host, four
    if len(host) > 253 or not all(map(_LABEL.match, labels)):
        raise _wrong("names a host that cannot be one (a dot at the end is left out, too)")
    return host, None


def _wrong(what: str) -> NotAllowed:
    return NotAllowed(f"The address {what}. Nothing was sent.")
