"""Which addresses are those of the public internet. Pure: a value in, a reason out.

What is not known to be public is not. `ipaddress.is_global` lets through addresses that lead to an
embedded IPv4 address (NAT64, 6to4), and a few that only look public, so the ranges stand here.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address

# IANA's special-purpose registry, and what clouds answer on beside it.
_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "an address of this machine"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "an address of a provider's inner network"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "a cloud's address for its own machines"),
        ("169.254.0.0/16", "a link-local address, where clouds keep their metadata"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.31.196.0/24", "a reserved address"),
        ("192.52.193.0/24", "a reserved address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("192.175.48.0/24", "a reserved address"),
        ("198.18.0.0/15", "an address for measurements"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::1/128", "a loopback address"),
        ("::/128", "an address of this machine"),
        ("::ffff:0:0/96", "an IPv4 address in IPv6 notation"),
        ("::ffff:0:0:0/96", "a translated IPv4 address"),
        ("::/96", "an IPv4 address in IPv6 notation"),
        ("64:ff9b:1::/48", "an address of a local translator"),
        ("2001::/32", "an address of a Teredo tunnel"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("2002::/16", "an address of a 6to4 tunnel"),
        ("2620:4f:8000::/48", "a reserved address"),
        ("3ffe::/16", "a reserved address"),
        ("3fff::/20", "an address for documentation"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
    )
)
_UNICAST = IPv6Network("2000::/3")
# Where there is only IPv6, a resolver gives these for every host that has only IPv4.
_NAT64 = IPv6Network("64:ff9b::/96")
# Of the last eight bytes of an ISATAP address the first four; the rest is an IPv4 address.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE, 0x0100_5EFE, 0x0300_5EFE})
# Where clouds tell a machine who it is, with credentials: the rest of what is private is servers.
_METADATA = tuple(
    ip_network(network)
    for network in (
        "100.100.100.200/32",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "192.0.0.192/32",
        "fd00:42::42/128",
        "fd00:c1::a9fe:a9fe/128",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        "fe80::/10",
    )
)
# Whoever translates these takes their last four bytes for an IPv4 address.
_ENDS_IN_V4 = tuple(
    IPv6Network(network)
    for network in ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
_TO4, _TEREDO = IPv6Network("2002::/16"), IPv6Network("2001::/32")
# A translator of one's own may also have a prefix of 48, 56 or 64 bits. The address behind it
# leaves out the byte in the middle.
_OWN_TRANSLATOR = IPv6Network("64:ff9b:1::/48")
_OWN_PREFIXES = (48, 56, 64)
_V4_BITS = 0xFFFF_FFFF


@lru_cache(maxsize=1_024)
def is_metadata(address: Address) -> bool:
    """Whether it is one that no server of an operator's has, and every cloud's machine can ask.

    Also where it only leads to one: a tunnel or a translator may stand on the way.
    """
    if any(address in network for network in _METADATA):
        return True
    return isinstance(address, IPv6Address) and any(map(is_metadata, _led_to(address)))


def _led_to(address: IPv6Address) -> Iterator[IPv4Address]:
    """Every IPv4 address that some notation has it stand for."""
    number = int(address)
    if any(address in network for network in _ENDS_IN_V4) or _is_isatap(address):
        yield IPv4Address(number & _V4_BITS)
    if address in _TO4:
        yield IPv4Address(number >> 80 & _V4_BITS)
    if address in _TEREDO:
        # The client's own is written inside out; its server stands before it.
        yield IPv4Address(~number & _V4_BITS)
        yield IPv4Address(number >> 64 & _V4_BITS)
    if address in _OWN_TRANSLATOR:
        whole = (number >> 64 << 56) | (number & (1 << 56) - 1)
        for prefix in _OWN_PREFIXES:
            yield IPv4Address(whole >> 120 - prefix - 32 & _V4_BITS)


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> 32 & _V4_BITS in _ISATAP


def not_public(address: Address) -> str:
    """What kind of address it is, where it is none of the public internet; else nothing."""
    if isinstance(address, IPv4Address):
        return next((what for network, what in _V4 if address in network), "")
    if address.scope_id is not None:
        return "an address of one network interface"
    if address in _NAT64:
        return not_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    for network, what in _V6:
        if address in network:
            return what
    if address not in _UNICAST:
        return "a reserved address"
    if _is_isatap(address):
        return "an address of an ISATAP tunnel"
    return ""
