"""Which addresses are public: every form that is not, and those that have to stay so."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.net.forms import FORMS
from toolgate.net.addresses import is_metadata, not_public

pytestmark = pytest.mark.req("P2")
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0"),
    *("192.0.1.1", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
    *("2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888"),
    *("2400:cb00:2048:1::c629:d7a2", "64:ff9b::8.8.8.8"),
)
# Those of a host's forms that are an address as it stands.
LITERAL = [form.strip("[]") for form in FORMS if form[0] == "["]
# What `ipaddress` calls global, and what leads to private places nevertheless.
MISLEADING = ("64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1", "2a00:1450::5efe:127.0.0.1")


def test_there_are_enough_forms() -> None:
    assert len(FORMS) >= 120


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is(address: str) -> None:
    assert not not_public(ip_address(address))


@pytest.mark.parametrize("address", LITERAL)
def test_what_is_not_public_is_said_to_be_what_it_is(address: str) -> None:
    assert not_public(IPv6Address(address)).startswith(("a ", "an "))


@pytest.mark.parametrize("address", MISLEADING)
def test_what_the_standard_library_takes_for_global_is_looked_into(address: str) -> None:
    assert not_public(ip_address(address))
    assert any(ip_address(one).is_global for one in MISLEADING), "the guard-off control"


@given(st.integers(0, 2**32 - 1))
def test_no_address_is_public_that_the_standard_library_calls_private(number: int) -> None:
    address = IPv4Address(number)
    if not address.is_global:
        assert not_public(address)
    if not not_public(address):
        for prefix in ("::ffff:0:0", "::", "2002::", "64:ff9b:1::"):
            assert not_public(IPv6Address(int(IPv6Address(prefix)) | number))
    assert bool(not_public(address)) == bool(
        not_public(IPv6Address(int(IPv6Address("64:ff9b::")) | number))
    )


@given(st.integers(0, 2**128 - 1))
def test_the_same_of_ipv6(number: int) -> None:
    address = IPv6Address(number)
    if not address.is_global:
        assert not_public(address)


METADATA = (
    *("100.100.100.200", "168.63.129.16", "169.254.169.254", "169.254.170.2", "192.0.0.192"),
    *("fd00:42::42", "fd00:c1::a9fe:a9fe", "fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe"),
)
# Each leads to an IPv4 address: its halves are `high` and `low`, its bytes `a` to `d`.
WRAPPINGS = (
    *("::ffff:{high}:{low}", "::ffff:0:{high}:{low}", "::{high}:{low}", "64:ff9b::{high}:{low}"),
    *("64:ff9b:1::{high}:{low}", "64:ff9b:1:7::{high}:{low}", "64:ff9b:1:{high}:{c}:{d00}::"),
    *("64:ff9b:1:77{aa}:{b}:{low}::", "64:ff9b:1:7777:{a}:{bc}:{d00}::", "2002:{high}:{low}::1"),
    *("2001:0:{high}:{low}:8000:63bf:1:1", "2001:0:4136:e378:8000:63bf:{not_high}:{not_low}"),
    *("2a00:1450::5efe:{high}:{low}", "2a00:1450::200:5efe:{high}:{low}"),
)


def wrapped(wrapping: str, inner: str) -> IPv6Address:
    number = int(IPv4Address(inner))
    high, low = number >> 16, number & 0xFFFF
    a, b, c, d = number.to_bytes(4)
    parts = {"high": high, "low": low, "not_high": high ^ 0xFFFF, "not_low": low ^ 0xFFFF}
    parts |= {"a": a, "b": b, "c": c, "bc": b << 8 | c, "d00": d << 8}
    said = {name: f"{part:x}" for name, part in parts.items()}
    return IPv6Address(wrapping.format(aa=f"{a:02x}", **said))


@pytest.mark.parametrize("address", METADATA)
def test_a_clouds_metadata_is_known(address: str) -> None:
    assert is_metadata(ip_address(address))
    assert not_public(ip_address(address)), "so that a name which leads there is refused"


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_it_is_known_through_any_tunnel_and_translator(wrapping: str) -> None:
    for inner in (one for one in METADATA if ":" not in one):
        assert is_metadata(wrapped(wrapping, inner))
        assert not_public(wrapped(wrapping, inner)), "so that a name which leads there is refused"
    # The control: servers of an operator's are none, however they are reached.
    assert not is_metadata(wrapped(wrapping, "10.1.2.3"))
    assert not is_metadata(wrapped(wrapping, "127.0.0.1"))


@pytest.mark.parametrize("address", ["10.0.0.7", "127.0.0.1", "::1", "fd12::1", "192.0.0.1"])
def test_what_is_private_is_not_metadata_for_that(address: str) -> None:
    assert not is_metadata(ip_address(address))


def test_the_ends_of_every_private_range_are_in_it() -> None:
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8"):
        whole = IPv4Network(network)
        assert not_public(whole[0])
        assert not_public(whole[-1])
