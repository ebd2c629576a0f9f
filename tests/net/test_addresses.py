"""Which addresses are public: every form that is not, and those that have to stay so."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.net.forms import FORMS
from toolgate.net.addresses import not_public

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


def test_the_ends_of_every_private_range_are_in_it() -> None:
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8"):
        whole = IPv4Network(network)
        assert not_public(whole[0])
        assert not_public(whole[-1])
