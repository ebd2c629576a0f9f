"""120 forms of an address, 12 tricks of a URL: none of them leads to a connection."""

import socket
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.net.far import OK, answer, far
from tests.net.forms import FORMS, TRICKS
from tests.net.tripwire import barred, hosts, tripwire
from toolgate import clock
from toolgate.net import guard as guarding
from toolgate.net import resolver as resolving
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


async def test_without_the_check_of_addresses_every_form_of_one_would_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard-off control. Odd notations, which another guard refuses, are in the next ones."""
    monkeypatch.setattr(guarding, "not_public", nothing_wrong)
    client = HttpClient(Guard())
    reached: list[str] = []
    for form in FORMS:
        with barred() as seen:
            await tried(client, f"http://{form}:1024/")
        if is_address(form):
            assert hosts(seen) == {str(ip_address(form.strip("[]")))}, form
            reached.append(form)
    await client.close()
    assert len(reached) > 60


def is_address(form: str) -> bool:
    try:
        return ip_address(form.strip("[]")).version == 4 or "%" not in form
    except ValueError:
        return False


@pytest.mark.parametrize("trick", TRICKS)
def test_a_lenient_reader_would_be_led_to_the_form_by_every_trick(trick: str) -> None:
    """The guard-off control of the strict one: as browsers and many libraries read addresses."""
    forms = [form for form in FORMS if is_address(form) and form[0] != "["]
    assert len(forms) > 20
    for form in forms:
        url = TRICKS[trick](form).replace("\\", "/").replace("。", ".")
        assert (urlsplit(url).hostname or "").strip(".") == form


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


# As a host that is not on this machine, and is to be reached by nobody.
ELSEWHERE = "127.0.0.3"


async def test_a_name_that_leads_elsewhere_at_every_look_gets_a_connection_only_where_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a time to live of nothing: no answer is good for the next request."""
    monkeypatch.setattr(resolving, "_KEPT_NS", 0)
    asked: list[str] = []

    async def turning(_host: str) -> tuple[Address, ...]:
        asked.append("127.0.0.1" if len(asked) % 2 == 0 else ELSEWHERE)
        return (ip_address(asked[-1]),)

    async def ends(guard: Guard) -> list[str]:
        asked.clear()
        client = HttpClient(guard)
        url = there.url("/", "turning.example")
        found = [await tried(client, url) for _ in range(6)]
        await client.close()
        return found

    async with far(lambda _got, _writer: answer(b"ok", "Connection: close")) as there:
        with tripwire() as seen:
            assert await ends(Guard(["127.0.0.1"], resolver=Resolver(turning))) == [
                *("let out", "NotAllowed", "let out", "NotAllowed", "let out", "NotAllowed")
            ]
        assert hosts(seen) == {"127.0.0.1"}
        assert len(asked) == 6, "what was checked is connected to: nobody asks a second time"
        monkeypatch.setattr(guarding, "not_public", nothing_wrong)
        with tripwire() as seen:
            await ends(Guard(resolver=Resolver(turning)))
        assert ELSEWHERE in hosts(seen), "the guard-off control"


async def test_a_name_that_leads_on_by_others_is_judged_by_where_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system follows a chain of names; what is said of those on the way does not count."""
    asked: list[str] = []

    def followed(host: str, *_args: object, **_how: object) -> list[tuple[Any, ...]]:
        asked.append(host)
        end = "127.0.0.1" if host == "near.example" else ELSEWHERE
        # As it is answered for near.example -> cdn.allowed.internal -> end.allowed.internal.
        kind = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
        return [(*kind, "end.allowed.internal", (end, 0))]

    async with far(lambda _got, _writer: OK) as there:
        monkeypatch.setattr(socket, "getaddrinfo", followed)
        client = HttpClient(Guard(["127.0.0.1", "*.allowed.internal"]))
        with tripwire() as seen:
            assert await tried(client, there.url("/", "far.example")) == "NotAllowed"
            assert await tried(client, there.url("/", "near.example")) == "let out"
        await client.close()
        assert hosts(seen) == {"127.0.0.1"}
        assert asked == ["far.example", "near.example"], "a link of the chain is never asked for"
        monkeypatch.setattr(guarding, "not_public", nothing_wrong)
        client = HttpClient(Guard())
        with tripwire() as seen:
            await tried(client, there.url("/", "far.example"))
        await client.close()
        assert hosts(seen) == {ELSEWHERE}, "the guard-off control"


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
