"""120 forms of an address, 12 tricks of a URL: none of them leads to a connection."""

from ipaddress import ip_address

import pytest

from tests.net.far import OK, far
from tests.net.forms import FORMS, TRICKS
from tests.net.tripwire import hosts, tripwire
from toolgate import clock
from toolgate.net import guard as guarding
from toolgate.net.addresses import Address
from toolgate.net.client import HttpClient
from toolgate.net.errors import NotAllowed, NotSent
from toolgate.net.guard import Guard
from toolgate.net.resolver import Resolver, system

pytestmark = pytest.mark.req("P2")


def nothing_wrong(_address: Address) -> str:
    return ""


async def tried(client: HttpClient, url: str) -> str:
    """What becomes of it: how it was refused, or that it was not."""
    try:
        await client.get(url, headers={}, most=1_000, seconds=0.2)
    except NotSent as refused:
        return type(refused).__name__
    return "let out"


@pytest.mark.parametrize("trick", TRICKS)
async def test_no_form_gets_a_connection(trick: str) -> None:
    client = HttpClient(Guard())
    with tripwire() as seen:
        ends = {form: await tried(client, TRICKS[trick](form)) for form in FORMS}
    await client.close()
    assert seen == []
    # A name that this machine does not know is the one other end.
    other = {form for form, end in ends.items() if end != "NotAllowed"}
    assert other <= {"ip6-localhost"}


async def test_the_tripwire_sees_what_is_let_out() -> None:
    async with far(lambda _got, _writer: OK) as there:
        client = HttpClient(Guard(["127.0.0.1"]))
        with tripwire() as seen:
            assert await tried(client, there.url()) == "let out"
        await client.close()
        assert seen == [("127.0.0.1", there.port)]


async def test_without_the_check_of_addresses_forms_would_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control; only to this machine, where nobody listens."""
    forms = ("127.0.0.1", "127.255.255.254", "[::1]", "[::ffff:127.0.0.1]", "localhost")
    monkeypatch.setattr(guarding, "not_public", nothing_wrong)
    client = HttpClient(Guard())
    with tripwire() as seen:
        for form in forms:
            await tried(client, f"http://{form}:1024/")
    await client.close()
    assert hosts(seen) & {"127.0.0.1", "127.255.255.254"}


async def test_a_resolver_would_read_odd_notations_as_this_machine() -> None:
    """Why such a host is refused before anybody is asked about it."""
    for odd in ("2130706433", "0177.0.0.1", "127.1", "0x7f.1"):
        assert await system(odd) == (ip_address("127.0.0.1"),)


async def test_an_address_that_changes_after_the_check_is_not_connected_to() -> None:
    answers = iter(["127.0.0.1", "169.254.169.254", "10.0.0.7"])

    async def rebinding(_host: str) -> tuple[Address, ...]:
        return (ip_address(next(answers)),)

    async with far(lambda _got, _writer: OK) as there:
        guard = Guard(["127.0.0.0/8"], resolver=Resolver(rebinding))
        client = HttpClient(guard)
        with tripwire() as seen:
            answer = await client.get(there.url("/", "moving.example"), headers={}, most=10)
        assert answer.body == b"ok"
        assert seen == [("127.0.0.1", there.port)]
        assert there.got[0].headers["host"] == f"moving.example:{there.port}"
        await client.close()


async def test_a_name_that_comes_to_lead_elsewhere_is_refused_also_where_a_connection_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [ip_address("127.0.0.1")]

    async def moving(_host: str) -> tuple[Address, ...]:
        return (answers[-1],)

    async with far(lambda _got, _writer: OK) as there:
        client = HttpClient(Guard(["127.0.0.0/8"], resolver=Resolver(moving)))
        url = there.url("/", "moving.example")
        assert (await client.get(url, headers={}, most=10)).body == b"ok"
        answers.append(ip_address("10.0.0.7"))
        # What is remembered of a name is looked up again after a while.
        later = clock.monotonic_ns() + 3_600_000_000_000
        monkeypatch.setattr("toolgate.net.resolver.clock.monotonic_ns", lambda: later)
        with tripwire() as seen, pytest.raises(NotAllowed, match="private address"):
            await client.get(url, headers={}, most=10)
        assert (seen, len(there.got)) == ([], 1)
        # The control: were it to lead where it may, it would be asked again.
        answers.append(ip_address("127.0.0.1"))
        monkeypatch.setattr("toolgate.net.resolver.clock.monotonic_ns", lambda: 2 * later)
        assert (await client.get(url, headers={}, most=10)).body == b"ok"
        await client.close()


async def test_one_private_answer_among_public_ones_refuses_all() -> None:
    async def mixed(_host: str) -> tuple[Address, ...]:
        return (ip_address("1.1.1.1"), ip_address("10.0.0.7"), ip_address("8.8.8.8"))

    client = HttpClient(Guard(resolver=Resolver(mixed)))
    with tripwire() as seen, pytest.raises(NotAllowed, match="private address"):
        await client.get("http://mixed.example/", headers={}, most=10)
    assert seen == []
    target = await Guard(["10.0.0.0/8"], resolver=Resolver(mixed)).check("http://mixed.example/")
    assert len(target.addresses) == 3, "the positive control"
    await client.close()
