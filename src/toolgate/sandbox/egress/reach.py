"""Which hosts a program may reach, as its tool or server names them: decided by name, not by where
the name leads."""

from collections.abc import Iterable
from typing import Self

import msgspec

from toolgate.errors import ProviderUnavailable, SettingsInvalid
from toolgate.net.location import Location
from toolgate.net.place import Place, read_place

# What a host without a port is reached on.
_USUAL_PORTS = frozenset({80, 443})


class Reach(msgspec.Struct, frozen=True):
    """The places; what is none of them is refused, and never looked up."""

    places: tuple[Place, ...]

    @classmethod
    def to(cls, hosts: Iterable[str]) -> Self:
        """As they are written; one that cannot be read means that nothing runs."""
        try:
            return cls(tuple(map(read_place, hosts)))
        except SettingsInvalid as wrong:
            raise ProviderUnavailable(
                f"Nothing ran in the sandbox. Correct the tool's `hosts`: {wrong.message}"
            ) from None

    def holds(self, location: Location) -> bool:
        """Whether it is one of them. An address is held only by what is written as one."""
        return any(_is_meant(place, location) for place in self.places)


def _is_meant(place: Place, location: Location) -> bool:
    host, port, address = location.host, location.port, location.address
    if place.port == 0 and port not in _USUAL_PORTS:
        return False
    return place.holds(address, port) if address is not None else place.names(host, port)
