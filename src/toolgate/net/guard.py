"""Where requests may go: parsed once, resolved once, every address checked.

What is public may be reached; what is not, only where an operator has written it down.
"""

from collections.abc import Iterable
from typing import NamedTuple

from toolgate.net.addresses import Address, is_metadata, not_public
from toolgate.net.errors import NotAllowed, NotSent
from toolgate.net.location import Location, read
from toolgate.net.place import Place, read_place
from toolgate.net.resolver import SECONDS, Resolver

_MOST_KEPT = 1_024
_MOST_NAMED = 10_000
_USUAL_PORTS = frozenset({80, 443})
_FIRST_FREE_PORT = 1_024


class Target(NamedTuple):
    """A location, and the addresses to connect to: no other is asked for again."""

    location: Location
    addresses: tuple[Address, ...]


class Guard:
    """What `[net] allow` says, and what else an operator has named."""

    def __init__(self, allow: Iterable[str] = (), *, resolver: Resolver | None = None) -> None:
        self._set(frozenset(map(read_place, allow)), resolver or Resolver())

    def _set(self, places: frozenset[Place], resolver: Resolver) -> None:
        self._places = places
        self._resolver = resolver
        self._read: dict[str, Location] = {}
        self._named: dict[str, Guard] = {}

    @property
    def places(self) -> frozenset[Place]:
        """What is let through beside what is public; connections are shared only among equals."""
        return self._places

    def named(self, *urls: str) -> "Guard":
        """One that also lets through the hosts and ports of these, wherever they are.

        They are an operator's: from the settings, never from a caller or another server. One that
        cannot be read adds nothing, and is refused when it is used; neither does one of a cloud's
        metadata, which takes an entry of its own.
        """
        places: set[Place] = set()
        for url in urls:
            try:
                found = read(url)
            except NotAllowed:
                continue
            if found.address is None or not is_metadata(found.address):
                places.add(read_place(found.place))
        if places <= self._places:
            return self
        key = "\n".join(sorted(map(repr, places)))
        if key not in self._named:
            if len(self._named) >= _MOST_NAMED:
                self._named.clear()
            wider = self._named[key] = Guard()
            wider._set(self._places | places, self._resolver)
        return self._named[key]

    def read(self, url: str) -> Location:
        """Where a URL leads, if a request may go to that port at all."""
        known = self._read.get(url)
        if known is not None:
            return known
        found = read(url)
        usual = found.port in _USUAL_PORTS or found.port >= _FIRST_FREE_PORT
        if not usual and not self._is_named(found) and not self._is_held(found):
            raise _forbidden(found, f"port {found.port} is none of the web")
        if len(self._read) >= _MOST_KEPT:
            self._read.clear()
        self._read[url] = found
        return found

    async def resolve(self, location: Location) -> Target:
        """The addresses behind it: all of them may be reached, or none is."""
        if location.address is not None:
            addresses = (location.address,)
        else:
            addresses = await self._looked_up(location.host)
        # A name is believed wherever it leads, but not to a cloud's metadata: who keeps the name
        # need not be who allowed it.
        is_named = self._is_named(location)
        for address in addresses:
            if not is_named or is_metadata(address):
                self._check(location, address)
        return Target(location, addresses)

    async def check(self, url: str) -> Target:
        """A URL that may be reached, or `NotAllowed` with what to write into the settings."""
        return await self.resolve(self.read(url))

    def _check(self, location: Location, address: Address) -> None:
        kind = not_public(address)
        if kind and not any(place.holds(address, location.port) for place in self._places):
            raise _forbidden(location, f"it leads to {kind}")

    def _is_named(self, location: Location) -> bool:
        return any(place.names(location.host, location.port) for place in self._places)

    def _is_held(self, location: Location) -> bool:
        address, port = location.address, location.port
        if address is None:
            return False
        return any(place.holds(address, port) for place in self._places)

    async def _looked_up(self, host: str) -> tuple[Address, ...]:
        try:
            found = await self._resolver.addresses(host)
        except TimeoutError:
            raise NotSent(
                f"The name {host} was not found within {SECONDS:g} s. Nothing was sent."
            ) from None
        if not found:
            raise NotSent(f"The host {host} cannot be found. Nothing was sent.")
        return found


def _forbidden(location: Location, why: str) -> NotAllowed:
    return NotAllowed(
        f"Requests to {location.place} are not let out: {why}. Nothing was sent. If it is to be "
        f'reached, an operator adds "{location.place}" to [net] allow.'
    )
