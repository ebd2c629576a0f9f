"""A secret that goes to some hosts and to no other; the client puts it in at the last moment."""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import quote

from toolgate.net.errors import NotAllowed
from toolgate.net.location import Location
from toolgate.net.place import Place, read_place

Where = Literal["header", "query", "cookie"]


class Attached(NamedTuple):
    """What a request gets from its credentials."""

    path: str
    headers: dict[str, str]


class Credential:
    """One secret: what it is called, where it may go, and where in a request it stands.

    `key` is the header, the parameter or the cookie that holds it. Neither its `repr` nor an
    error has the value.
    """

    __slots__ = ("_places", "_value", "key", "name", "where")

    def __init__(
        self, name: str, value: str, hosts: Sequence[str], *, where: Where = "header", key: str
    ) -> None:
        self.name = name
        self.where: Where = where
        self.key = key
        self._value = value
        self._places: tuple[Place, ...] = tuple(map(read_place, hosts))

    def __repr__(self) -> str:
        return f"Credential({self.name!r}, in {self.where} {self.key!r})"

    def __reduce__(self) -> str:
        raise TypeError("a credential stays in this process")

    def may_go_to(self, location: Location) -> bool:
        """Whether this host is one of its own."""
        host, port, address = location.host, location.port, location.address
        return any(
            place.names(host, port) or (address is not None and place.holds(address, port))
            for place in self._places
        )

    def attach(self, location: Location, to: Attached) -> Attached:
        """The request with it, or `NotAllowed` where its host is none of its own."""
        if not self.may_go_to(location):
            raise NotAllowed(
                f"The secret {self.name} may not be sent to {location.place}. Nothing was sent. If "
                "it belongs there, an operator adds the host to the secret's hosts."
            )
        headers = {name: value for name, value in to.headers.items() if not self._is(name)}
        if self.where == "header":
            headers[self.key] = self._value
        elif self.where == "cookie":
            crumb = f"{self.key}={quote(self._value, safe='')}"
            kept = to.headers.get("Cookie", "")
            headers["Cookie"] = f"{kept}; {crumb}" if kept else crumb
        else:
            sign = "&" if "?" in to.path else "?"
            pair = f"{quote(self.key, safe='')}={quote(self._value, safe='')}"
            return Attached(f"{to.path}{sign}{pair}", headers)
        return Attached(to.path, headers)

    def _is(self, header: str) -> bool:
        """Whether a caller's header would stand where this one has to."""
        own = {"header": self.key, "cookie": "Cookie"}.get(self.where, "")
        return header.lower() == own.lower()
