"""What the guard lets out: places an operator has written down, ports of the web, one reading."""

import asyncio
from ipaddress import ip_address

import pytest

from toolgate.errors import SettingsInvalid
from toolgate.net import guard as guarding
from toolgate.net.addresses import Address
from toolgate.net.errors import NotAllowed, NotSent
from toolgate.net.guard import Guard
from toolgate.net.location import read
from toolgate.net.place import read_place
from toolgate.net.resolver import Resolver
from toolgate.settings.outward import Net

pytestmark = pytest.mark.req("P2")
KNOWN = {
    "db.internal": "10.1.2.3",
    "a.db.internal": "10.1.2.4",
    "internal": "10.1.2.5",
    "xinternal": "10.1.2.6",
    "localhost": "127.0.0.1",
    "public.example": "1.1.1.1",
    "metadata.internal": "169.254.169.254",
    "wrapped.internal": "::ffff:169.254.169.254",
    "google.internal": "fd20:ce::254",
    "oracle.internal": "192.0.0.192",
    "tunnel.internal": "2002:a9fe:a9fe::1",
    "compatible.internal": "::169.254.169.254",
    "translated.internal": "::ffff:0:a9fe:a9fe",
    "translator.internal": "64:ff9b:1::a9fe:a9fe",
    "isatap.internal": "2a00:1450::5efe:a9fe:a9fe",
    "teredo.internal": "2001:0:4136:e378:8000:63bf:5601:5601",
}
LED_ASTRAY = (
    *("google", "oracle", "tunnel", "compatible", "translated", "translator", "isatap", "teredo"),
)


async def known(host: str) -> tuple[Address, ...]:
    if host not in KNOWN:
        raise OSError("no such name")
    return (ip_address(KNOWN[host]),)


def nowhere_special(_address: Address) -> bool:
    return False


def guard(*allow: str) -> Guard:
    return Guard(allow, resolver=Resolver(known))


async def lets_out(guard: Guard, url: str) -> bool:
    try:
        await guard.check(url)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize(
    ("place", "yes", "no"),
    [
        ("db.internal", "http://db.internal:7/", "http://a.db.internal/"),
        ("DB.Internal", "https://db.internal/", "http://internal/"),
        ("db.internal:8080", "http://db.internal:8080/", "http://db.internal:8081/"),
        ("*.internal", "http://a.db.internal/", "http://internal/"),
        ("*.internal", "http://db.internal:22/", "http://xinternal/"),
        ("*.internal:8080", "http://db.internal:8080/", "http://db.internal/"),
        ("10.1.0.0/16", "http://10.1.255.1/", "http://10.2.0.1/"),
        ("10.1.0.0/16", "http://xinternal/", "http://localhost/"),
        ("127.0.0.1", "http://localhost:9000/", "http://127.0.0.2/"),
        ("127.0.0.1:99", "http://127.0.0.1:99/", "http://127.0.0.1:98/"),
        ("[::1]:99", "http://[::1]:99/", "http://[::1]:98/"),
        ("::1", "http://[::1]/", "http://[::2]/"),
        ("fd00::/8", "http://[fd00:ec2::254]/", "http://[fe80::1]/"),
        ("localhost:8080", "http://localhost:8080/", "http://127.0.0.1:8080/"),
    ],
)
async def test_a_place_lets_out_what_it_names(place: str, yes: str, no: str) -> None:
    assert await lets_out(guard(place), yes)
    assert not await lets_out(guard(place), no)
    assert not await lets_out(guard(), yes), "the positive control is not public anyway"
    assert Net(allow=(place,)).allow == (place,), "the settings take it"


@pytest.mark.parametrize("place", ["10.0.0.0/40", "a b", "*.10.0.0.1", "x:99999", "", "127.1", "*"])
def test_what_is_no_place_stops_the_start(place: str) -> None:
    with pytest.raises(SettingsInvalid, match="is no place"):
        read_place(place)


@pytest.mark.parametrize("port", [1, 22, 25, 53, 110, 139, 445, 1023])
async def test_a_public_host_is_asked_on_ports_of_the_web(port: int) -> None:
    assert not await lets_out(guard(), f"http://public.example:{port}/")
    assert await lets_out(guard(f"public.example:{port}"), f"http://public.example:{port}/")


@pytest.mark.parametrize("url", ["http://public.example", "https://public.example:8443/a?b#c"])
async def test_what_is_public_needs_no_entry(url: str) -> None:
    assert await lets_out(guard(), url)


async def test_what_an_operator_names_is_that_host_and_port_and_no_other() -> None:
    plain = guard()
    named = plain.named("http://db.internal:8080/mcp")
    assert await lets_out(named, "http://db.internal:8080/other")
    for url in ("http://db.internal/", "http://a.db.internal:8080/", "http://10.1.2.3:8080/"):
        assert not await lets_out(named, url), url
    assert not await lets_out(plain, "http://db.internal:8080/mcp"), "the first is as it was"
    assert plain.named("http://db.internal:8080/again") is named
    assert plain.named("nonsense") is plain


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://metadata.internal/latest",
        "http://wrapped.internal/latest",
    ],
)
async def test_a_clouds_metadata_takes_an_entry_of_its_own(url: str) -> None:
    assert not await lets_out(guard().named(url), url), "an address in the settings is none"
    assert not await lets_out(guard("*.internal"), url), "and a name may come to lead there"
    every = ("169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254")
    assert await lets_out(guard("100.100.100.200", *every), url)
    assert await lets_out(guard().named("http://db.internal/"), "http://db.internal/")


@pytest.mark.parametrize("name", LED_ASTRAY)
async def test_a_name_of_an_operators_that_comes_to_lead_to_metadata_is_refused_in_any_notation(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://{name}.internal/latest"
    assert not await lets_out(guard("*.internal"), url)
    assert not await lets_out(guard().named(url), url)
    assert await lets_out(guard("*.internal", KNOWN[f"{name}.internal"]), url), (
        "an entry of its own"
    )
    monkeypatch.setattr(guarding, "is_metadata", nowhere_special)
    assert await lets_out(guard("*.internal"), url), "the guard-off control"


async def test_the_refusal_says_what_to_write() -> None:
    with pytest.raises(NotAllowed) as refused:
        await guard().check("http://db.internal:8080/secret-path?token=s3cret")
    message = refused.value.message
    assert '"db.internal:8080" to [net] allow' in message
    assert not refused.value.retryable
    assert "10.1.2.3" not in message, "where a name leads is nobody's to learn"
    assert "s3cret" not in message
    place = message.split('"')[1]
    assert await lets_out(guard(place), "http://db.internal:8080/"), "and it helps"


async def test_a_name_that_is_not_there_is_not_sent_and_may_be_later() -> None:
    with pytest.raises(NotSent, match="cannot be found") as missing:
        await guard().check("http://nowhere.example/")
    assert missing.value.retryable


@pytest.mark.parametrize(
    "url",
    [
        *("", "http://", "http:///x", "//public.example/", "public.example", "file:///etc/passwd"),
        *("ftp://public.example/", "gopher://public.example/", "javascript:alert(1)"),
        *("http:public.example", "http:/public.example", "http://public.example:0/"),
        *("http://public.example:65536/", "http://public.example:80:80/", "http://[::1/"),
        *("http://public.example:x/", "http://public.example:+80/", "http://a..b/"),
        *("http://user@public.example/", "http://:@public.example/", "http://-a.example/"),
        *("http://public.example\\x/", "http://public.example/\\x", "http://public.example/a b"),
        *(
            "http://public.example/\x00",
            "http://public.example/\r\nX: y",
            "http://pub%6cic.example/",
        ),
        *("http://public．example/", "http://ｐublic.example/", "http://public.example/é"),  # noqa: RUF001
        *("http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "example/"),
        "http://public.example/" + "a" * 9_000,
    ],
)
def test_an_address_that_can_be_read_in_two_ways_is_not_read(url: str) -> None:
    with pytest.raises(NotAllowed) as refused:
        read(url)
    assert len(refused.value.message) < 250


def test_what_is_read_is_written_in_one_way() -> None:
    read_as = read("HTTPS://Public.Example:443?a=b#c")
    assert read_as == ("https", "public.example", 443, "/?a=b", None)
    assert read_as.authority == "public.example"
    six = read("http://[2A00:1450:0:0:0:0:0:1]:8080/")
    assert (six.host, six.authority) == ("2a00:1450::1", "[2a00:1450::1]:8080")


async def test_a_name_is_looked_up_once_for_all_who_wait_and_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    go = asyncio.Event()

    async def slowly(host: str) -> tuple[Address, ...]:
        asked.append(host)
        await go.wait()
        return (ip_address("1.1.1.1"),)

    resolver = Resolver(slowly)
    waiting = [asyncio.create_task(resolver.addresses("a.example")) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    go.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert found[1:] == [(ip_address("1.1.1.1"),)] * 4, "one that leaves takes nobody along"
    await resolver.addresses("a.example")
    assert asked == ["a.example"]
    monkeypatch.setattr("toolgate.net.resolver.clock.monotonic_ns", lambda: 1 << 62)
    await resolver.addresses("a.example")
    assert asked == ["a.example"] * 2
