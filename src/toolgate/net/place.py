"""Places as an operator writes them: `host`, `host:port`, `*.domain`, an address or a network."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from toolgate.errors import SettingsInvalid
from toolgate.net.addresses import Address
from toolgate.net.errors import NotAllowed
from toolgate.net.location import read_host

_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):([0-9]{1,5})\Z")


class Place(NamedTuple):
    """One of: a host, all hosts below a domain, a network. A port narrows it."""

    host: str = ""
    domain: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int = 0

    def names(self, host: str, port: int) -> bool:
        """Whether a host is meant by its name."""
        if self.port not in {0, port}:
            return False
        return host == self.host if self.host else bool(self.domain) and host.endswith(self.domain)

    def holds(self, address: Address, port: int) -> bool:
        """Whether an address is in the network that is meant."""
        return self.port in {0, port} and self.network is not None and address in self.network


def read_place(given: str) -> Place:
    """A place as it is written in the settings."""
    wrong = SettingsInvalid(
        [f"{given[:80]!r} is no place: write a host, host:port, *.domain or 10.0.0.0/8"]
    )
    if "/" in given:
        try:
            return Place(network=ip_network(given.replace("[", "").replace("]", "")))
        except ValueError:
            raise wrong from None
    text, port = given, 0
    if found := _WITH_PORT.match(given):
        text, port = found[1], int(found[2])
    elif given.count(":") > 1 and not given.startswith("["):
        text = f"[{given}]"
    star = text.startswith("*.")
    try:
        host, address = read_host(text.removeprefix("*."))
    except NotAllowed:
        raise wrong from None
    if port > 65_535 or (star and address is not None):
        raise wrong
    if address is not None:
        # An address is meant whichever name leads to it.
        return Place(network=ip_network(address), port=port)
    return Place(domain=f".{host}", port=port) if star else Place(host=host, port=port)
