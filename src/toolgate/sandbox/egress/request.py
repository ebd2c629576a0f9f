"""What a program asks of its proxy: a tunnel to a host, or one request to one. Read strictly."""

import re

import msgspec

from toolgate.net.errors import NotAllowed
from toolgate.net.guard import Guard
from toolgate.net.location import Location

_LINE = re.compile(r"([A-Z]{1,20}) ([!-~]{1,8192}) HTTP/1\.[01]\Z")
# In one pass: a program's own words are read here, while everybody else waits.
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]++):([^\x00-\x08\x0a-\x1f\x7f]*+)\Z")
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:/?#@\[\]]+):[0-9]{1,5}\Z")
_SIZE = re.compile(r"[0-9]{1,15}\Z")
# Between two neighbours only; the far server is another neighbour.
_HOP = frozenset(
    {"connection", "proxy-connection", "keep-alive", "te", "trailer", "upgrade", "host"}
    | {"proxy-authorization", "proxy-authenticate"}
)


class RefusedError(Exception):
    """The answer to what is not done: a status, and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Request(msgspec.Struct, frozen=True):
    """Where it goes, and, unless it is a tunnel, what is sent there."""

    location: Location
    head: bytes = b""
    # Bytes of the body that follow; a tunnel has no end of its own.
    body: int = 0

    @property
    def is_tunnel(self) -> bool:
        return not self.head


def read(head: bytes, guard: Guard) -> Request:
    """A request as it came, to the empty line at its end."""
    first, *rest = head.removesuffix(b"\r\n\r\n").decode("latin-1").split("\r\n")
    line = _LINE.match(first)
    headers = [_HEADER.match(each) for each in rest]
    if line is None or not all(headers):
        raise RefusedError(400, "The request cannot be read.")
    pairs = [(found[1].lower(), found[2].strip(" \t")) for found in headers if found]
    method, target = line[1], line[2]
    try:
        if method == "CONNECT":
            return _tunnel(target, pairs, guard)
        return _forwarded(method, target, pairs, guard)
    except NotAllowed as refused:
        raise RefusedError(403, refused.message) from None


def _tunnel(target: str, headers: list[tuple[str, str]], guard: Guard) -> Request:
    if not _AUTHORITY.match(target):
        raise RefusedError(400, "A tunnel leads to a host and a port.")
    location = guard.read(f"https://{target}/")
    _check_host(location, headers, needed=False)
    return Request(location)


def _forwarded(method: str, target: str, headers: list[tuple[str, str]], guard: Guard) -> Request:
    if not target.lower().startswith("http://"):
        raise RefusedError(400, "A proxy is asked for http://…, or for a tunnel by CONNECT.")
    location = guard.read(target)
    _check_host(location, headers, needed=True)
    sizes = [value for name, value in headers if name == "content-length"]
    if any(name == "transfer-encoding" for name, _ in headers):
        raise RefusedError(411, "Say how long the body is, with Content-Length.")
    if len(sizes) > 1 or not all(map(_SIZE.match, sizes)):
        raise RefusedError(400, "The length of the body cannot be read.")
    named = {
        word.strip().lower() for name, value in headers if name == "connection"
        for word in value.split(",")
    } - {"content-length"}  # fmt: skip
    kept = [f"{name}: {value}" for name, value in headers if name not in _HOP | named]
    lines = [
        f"{method} {location.path} HTTP/1.1",
        f"host: {location.authority}",
        # One request, one connection: what might follow is not for this server.
        "connection: close",
        *kept,
    ]
    return Request(
        location, "\r\n".join([*lines, "", ""]).encode("latin-1"), int(sizes[0]) if sizes else 0
    )


def _check_host(location: Location, headers: list[tuple[str, str]], *, needed: bool) -> None:
    said = [value.lower() for name, value in headers if name == "host"]
    if len(said) > 1 or (needed and not said):
        raise RefusedError(400, "A request names its host once.")
    place = location.place
    same = {place, location.authority}
    if location.scheme == "https":
        # A tunnel's port is in the line above; some leave it out here.
        same.add(place.rpartition(":")[0])
    if said and said[0] not in same:
        raise RefusedError(403, "The Host header names another host than the request.")
