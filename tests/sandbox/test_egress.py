"""The way out of a sandbox: the hosts that are named, and no others, by whichever trick."""

import asyncio
import contextlib

import pytest

from tests.house import until
from tests.sandbox.hosts import far, hello, proxied, said
from toolgate.errors import ProviderUnavailable
from toolgate.net.location import read
from toolgate.sandbox.egress.hello import IncompleteError, server_name
from toolgate.sandbox.egress.reach import Reach

pytestmark = pytest.mark.req("P4")
HOSTS = ("api.test:{port}", "*.wide.test:{port}", "plain.test")


def _request(target: str, host: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *more, "", ""]).encode("latin-1")


def _tunnel(target: str, *more: str) -> bytes:
    return "\r\n".join([f"CONNECT {target} HTTP/1.1", *more, "", ""]).encode("latin-1")


@pytest.mark.parametrize("host", ["api.test", "API.Test", "a.wide.test", "a.b.wide.test"])
async def test_a_named_host_is_reached_by_a_request_and_by_a_tunnel(host: str) -> None:
    async with far() as server:
        port = server.port
        hosts = [each.format(port=port) for each in HOSTS]
        async with proxied(hosts, server.guard()) as proxy:
            asked = _request(
                f"http://{host}:{port}/a?b", f"{host}:{port}", "Proxy-Authorization: x"
            )
            assert (await said(proxy, asked)).endswith(b"hello\n")
            tls = hello(host.lower())
            assert b" 200 " in await said(proxy, _tunnel(f"{host}:{port}"), tls + b"body")
    request, tunnelled = server.sent
    assert request.startswith(b"GET /a?b HTTP/1.1\r\nhost: " + host.lower().encode())
    assert b"proxy" not in request.lower()
    assert tunnelled == tls + b"body"


# Each with the entry by which the very same would be let through.
_NAMES = [
    ("evil.test", "evil.test:{port}"),
    ("api.test.evil.test", "api.test.evil.test:{port}"),
    ("evilapi.test", "evilapi.test:{port}"),
    ("evil-wide.test", "evil-wide.test:{port}"),
    ("wide.test", "wide.test:{port}"),
    ("xn--pi-7ha.test", "xn--pi-7ha.test:{port}"),
    ("127.0.0.1", "127.0.0.1:{port}"),
    ("localhost", "localhost:{port}"),
    ("plain.test", "plain.test:{port}"),
]


@pytest.mark.parametrize(("name", "entry"), _NAMES)
async def test_another_name_is_refused_and_not_even_looked_up(name: str, entry: str) -> None:
    async with far() as server:
        port = server.port
        asked = _request(f"http://{name}:{port}/", f"{name}:{port}")
        tunnel = _tunnel(f"{name}:{port}")
        hosts = [each.format(port=port) for each in HOSTS]
        async with proxied(hosts, server.guard()) as proxy:
            for each in (asked, tunnel):
                assert (await said(proxy, each)).startswith(b"HTTP/1.1 403")
        assert (server.sent, server.looked_up) == ([], [])
        async with proxied([entry.format(port=port)], server.guard()) as proxy:
            assert (await said(proxy, asked)).endswith(b"hello\n")


_POST = "POST http://api.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\n"
_TRICKS = [
    "CONNECT api.test.:{port} HTTP/1.1\r\n\r\n",
    "CONNECT api.test HTTP/1.1\r\n\r\n",
    "CONNECT api.test\0.evil.test:{port} HTTP/1.1\r\n\r\n",
    "CONNECT api.test%00.evil.test:{port} HTTP/1.1\r\n\r\n",
    "CONNECT evil.test:{port}#api.test:{port} HTTP/1.1\r\n\r\n",
    "CONNECT api.test@evil.test:{port} HTTP/1.1\r\n\r\n",
    "CONNECT api.test:{port}@evil.test:{port} HTTP/1.1\r\n\r\n",
    "CONNECT \xe4pi.test:{port} HTTP/1.1\r\n\r\n",
    "CONNECT 2130706433:{port} HTTP/1.1\r\n\r\n",
    "CONNECT 0x7f.1:{port} HTTP/1.1\r\n\r\n",
    "CONNECT [::1]:{port} HTTP/1.1\r\n\r\n",
    "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\n\r\n",
    "CONNECT api.test:0{port} HTTP/1.1\r\n\r\n",
    "CONNECT http://api.test:{port}/ HTTP/1.1\r\n\r\n",
    "CONNECT api.test:{port} HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n",
    "CONNECT api.test:{port} HTTP/1.1\r\nHost: api.test\r\nHost: evil.test\r\n\r\n",
    "connect api.test:{port} HTTP/1.1\r\n\r\n",
    "GET http://api.test:{port}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "GET http://api.test:{port}/ HTTP/1.1\r\n\r\n",
    "GET http://evil.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n",
    "GET http://api.test:{port}@evil.test:{port}/ HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n",
    "GET http://evil.test:{port}\\@api.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n",
    "GET https://api.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n",
    "GET http://api.test:{port}/ HTTP/1.1\nHost: api.test:{port}\r\n\r\n",
    "GET http://api.test:{port}/ HTTP/1.1\r\n Host: api.test:{port}\r\n\r\n",
    "GET http://api.test:{port}/ HTTP/1.1\r\nHost : api.test:{port}\r\n\r\n",
    "GET http://api.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\nA: b\rC: d\r\n\r\n",
    _POST + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    _POST + "Content-Length: 4\r\nContent-Length: 40\r\n\r\nbody",
    _POST + "Content-Length: +4\r\n\r\nbody",
    "GET ftp://api.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n",
    "GET http://api.test:{port}/" + "x" * 20_000 + " HTTP/1.1\r\n\r\n",
]  # fmt: skip


async def test_no_trick_of_writing_gets_out() -> None:
    async with far() as server:
        port = server.port
        hosts = [each.format(port=port) for each in HOSTS]
        async with proxied(hosts, server.guard()) as proxy:
            for trick in _TRICKS:
                got = await said(proxy, trick.format(port=port).encode("latin-1"))
                assert got == b"" or got.startswith(b"HTTP/1.1 4"), trick
            assert (server.sent, server.looked_up) == ([], [])
            fine = _request(f"http://api.test:{port}/", f"api.test:{port}")
            assert (await said(proxy, fine)).endswith(b"hello\n")


async def test_a_tunnel_is_for_tls_with_the_host_it_was_asked_for() -> None:
    """Else a server that is a proxy, or serves many hosts, would be a way to others."""
    async with far() as server:
        port = server.port
        connect = _tunnel(f"api.test:{port}", f"Host: api.test:{port}")
        relayed = _tunnel("evil.test:443")
        others = [relayed, _request("http://evil.test/", "evil.test"), b"SSH-2.0-x\r\n\r\n"]
        others += [hello("evil.test"), hello(None), hello("api.test.evil.test"), hello("xapi.test")]
        async with proxied([f"api.test:{port}"], server.guard()) as proxy:
            for each in others:
                assert await said(proxy, connect, each) == (
                    b"HTTP/1.1 200 Connection established\r\n\r\n"
                )
            assert server.sent == []
            await said(proxy, connect, hello("api.test") + b"body")
            assert len(server.sent) == 1


async def test_what_follows_a_request_is_not_sent() -> None:
    async with far() as server:
        port = server.port
        first = (
            f"POST http://api.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}\r\n"
            "Content-Length: 4\r\nConnection: keep-alive, x-kept\r\nX-Kept: no\r\n\r\nbody"
        ).encode()
        second = _request("http://evil.test/", "evil.test")
        async with proxied([f"api.test:{port}"], server.guard()) as proxy:
            assert (await said(proxy, first)).endswith(b"hello\n")
            await said(proxy, first + second)
        sent = b"".join(server.sent)
        assert b"evil" not in sent
        assert b"x-kept" not in sent.lower()
        assert b"connection: close" in sent


async def test_a_named_host_that_is_private_takes_an_entry_of_its_own() -> None:
    async with far() as server:
        place = f"api.test:{server.port}"
        asked = _request(f"http://{place}/", place)
        async with proxied([place], server.guard("10.0.0.0/8")) as proxy:
            got = await said(proxy, asked)
            assert got.startswith(b"HTTP/1.1 403")
            assert b"[net] allow" in got
        assert server.sent == []
        async with proxied([place], server.guard(place)) as proxy:
            assert (await said(proxy, asked)).endswith(b"hello\n")


async def test_a_closed_proxy_cuts_what_goes_on() -> None:
    async with far() as server:
        place = f"api.test:{server.port}"
        async with proxied([place], server.guard()) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
            writer.write(_tunnel(place))
            await reader.readuntil(b"\r\n\r\n")
            writer.write(hello("api.test"))
            await until(lambda: len(server.sent) == 1)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        await until(lambda: server.ended == 1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy)


@pytest.mark.parametrize("host", ["api.test.", "a b", "*", "http://api.test", "api.test:99999"])
def test_a_list_that_cannot_be_read_means_that_nothing_runs(host: str) -> None:
    with pytest.raises(ProviderUnavailable, match="hosts"):
        Reach.to(["api.test", host])


def test_a_host_without_a_port_is_that_of_the_web() -> None:
    reach = Reach.to(["api.test", "10.0.0.0/8"])
    for url, held in {
        "http://api.test/": True, "https://api.test/": True, "https://api.test:8443/": False,
        "https://10.1.2.3/": True, "https://11.1.2.3/": False, "https://api.test:22/": False,
    }.items():  # fmt: skip
        assert reach.holds(read(url)) is held, url


def test_the_name_is_found_however_the_message_is_divided() -> None:
    whole = hello("api.test")
    for end in range(len(whole)):
        with pytest.raises(IncompleteError):
            server_name(whole[:end])
    assert server_name(whole + b"more") == "api.test"
    body = whole[5:]
    records = b"".join(
        whole[:3] + len(piece).to_bytes(2) + piece
        for piece in (body[at : at + 7] for at in range(0, len(body), 7))
    )
    assert server_name(records) == "api.test"
    for at in range(6, len(whole)):
        try:
            server_name(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        except (ValueError, IncompleteError):
            continue


async def test_connections_and_bytes_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with far() as server:
        place = f"api.test:{server.port}"
        asked = _request(f"http://{place}/", place)
        async with proxied([place], server.guard()) as proxy:
            monkeypatch.setattr("toolgate.sandbox.egress.relay.MOST_BYTES", 10)
            assert b"hello" not in await said(proxy, asked)
            monkeypatch.undo()
            assert b"hello" in await said(proxy, asked)
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
            writer.write(_tunnel(place))
            await reader.readuntil(b"\r\n\r\n")
            monkeypatch.setattr("toolgate.sandbox.egress.proxy._MOST_LINES", 1)
            assert await said(proxy, asked) == b""
            writer.close()
            monkeypatch.undo()
            monkeypatch.setattr("toolgate.sandbox.egress.relay.IDLE_SECONDS", 0.05)
            silent = _tunnel(place), hello("api.test")
            assert (await said(proxy, *silent)).endswith(b"established\r\n\r\n")
