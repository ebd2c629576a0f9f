"""The client over real sockets: what it writes, what it takes for an answer, and what not."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Mapping

import aiohttp
import pytest
import uvloop

from tests.house import HERE
from tests.net.far import OK, Got, Said, answer, far
from tests.net.tripwire import tripwire
from toolgate.net.client import HttpClient
from toolgate.net.errors import Late, Lost, NotSent
from toolgate.net.headers import Fixed

pytestmark = pytest.mark.req("P2")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    one = HttpClient(HERE, timeout=20.0)
    yield one
    await one.close()


async def test_a_request_is_written_once_and_whole(client: HttpClient) -> None:
    async with far(lambda _got, _writer: answer(b"[]", "X-One: a", "x-one: b")) as there:
        given = {"Content-Type": "application/json", "X-Mine": "é"}
        url = there.url("/a%20b?c=d#e")
        got = await client.send("POST", url, headers=given, body=b"{}", most=10)
        assert (got.status, got.body) == (200, b"[]")
        assert (got.headers["x-ONE"], got.headers.get("Missing")) == ("a, b", None)
        [sent] = there.got
        assert sent.line == "POST /a%20b?c=d HTTP/1.1"
        assert sent.body == b"{}"
        assert sent.headers == {
            "host": f"127.0.0.1:{there.port}",
            "accept-encoding": "identity",
            "user-agent": "toolgate",
            "content-length": "2",
            "content-type": "application/json",
            "x-mine": "é",
        }


SHAPES: Mapping[str, tuple[bytes, bytes]] = {
    "by its length": (OK, b"ok"),
    "in chunks": (CHUNKED + b"1\r\no\r\n1;x=y\r\nk\r\n0\r\nTrailer: z\r\n\r\n", b"ok"),
    "nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "not changed": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", b""),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    "after others": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + OK,
        b"ok",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_has_its_shape_and_the_connection_is_kept(
    client: HttpClient, shape: str
) -> None:
    wire, body = SHAPES[shape]
    async with far(lambda _got, _writer: wire) as there:
        for _ in range(3):
            assert (await client.get(there.url(), headers={}, most=10)).body == body
        async with client.stream("GET", there.url(), headers={}, seconds=20) as streamed:
            assert b"".join([piece async for piece in streamed]) == body
        assert there.connections == 1


@pytest.mark.parametrize("cut", [1, 2, 3, 5])
async def test_an_answer_in_pieces_is_the_same(client: HttpClient, cut: int) -> None:
    wire = SHAPES["in chunks"][0]

    async def by_pieces(_got: Got, writer: asyncio.StreamWriter) -> Said:
        for start in range(0, len(wire), cut):
            writer.write(wire[start : start + cut])
            await asyncio.sleep(0)
        return b""

    async with far(by_pieces) as there:
        assert (await client.get(there.url(), headers={}, most=10)).body == b"ok"


async def test_a_head_has_no_body_whatever_length_it_tells(client: HttpClient) -> None:
    def said(got: Got, _writer: asyncio.StreamWriter) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n" if got.line[0] == "H" else OK

    async with far(said) as there:
        for _ in range(2):
            got = await client.send("HEAD", there.url(), headers={}, most=1)
            assert (got.body, got.headers["content-length"]) == (b"", "50")
        assert (await client.get(there.url(), headers={}, most=2)).body == b"ok"
        assert there.connections == 1


async def test_an_answer_can_end_with_its_connection(client: HttpClient) -> None:
    async def old(_got: Got, writer: asyncio.StreamWriter) -> Said:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")
        return None

    async with far(old) as there:
        for _ in range(2):
            assert (await client.get(there.url(), headers={}, most=20)).body == b"all of it"
        assert there.connections == 2


ODD: Mapping[str, bytes] = {
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "a length too short": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + CHUNKED[17:] + b"0\r\n\r\n",
    "chunks of what": CHUNKED + b"zz\r\n",
    "an encoding of chunks": CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    "a folded line": b"HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\nContent-Length : 2\r\n\r\nok",
    "compressed": answer(gzip.compress(b"ok"), "Content-Encoding: gzip"),
    "cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
    "cut off in chunks": CHUNKED + b"5\r\nab",
    "cut off in its head": b"HTTP/1.1 200 OK\r\nContent-",
}


@pytest.mark.parametrize("odd", ODD)
async def test_what_is_no_whole_answer_is_none(client: HttpClient, odd: str) -> None:
    async def said(_got: Got, writer: asyncio.StreamWriter) -> Said:
        writer.write(ODD[odd])
        return None

    async with far(said) as there:
        with pytest.raises(Lost, match=f"http://127.0.0.1:{there.port}/ "):
            await client.send("POST", there.url(), headers={}, body=b"x", most=100)
        assert len(there.got) == 1


@pytest.mark.parametrize(
    "headers",
    [
        *({"X": "a\r\nHost: evil"}, {"X": "a\nb"}, {"X": "a\rb"}, {"X": "a\x00b"}, {"X\r\nY": "a"}),
        *({"X Y": "a"}, {"": "a"}, {"X:": "a"}, {"X": "\u2028"}, {"X": "日"}, {"X": "a" * 70_000}),
        *({"Host": "evil"}, {"hOST": "evil"}, {"Content-Length": "0"}, {"Connection": "close"}),
        *({"Transfer-Encoding": "chunked"}, {"Expect": "100-continue"}, {"Upgrade": "h2c"}),
        *({"Accept-Encoding": "gzip"}, {"Proxy-Authorization": "x"}, {"TE": "trailers"}),
    ],
    ids=repr,
)
async def test_a_header_that_would_be_more_than_one_is_not_sent(
    client: HttpClient, headers: dict[str, str]
) -> None:
    async with far(lambda _got, _writer: OK) as there:
        with tripwire() as seen, pytest.raises(NotSent):
            await client.get(there.url(), headers=headers, most=10)
        assert seen == []
        with pytest.raises(NotSent):
            Fixed(headers)


async def test_headers_that_were_looked_at_once_go_out_as_any_others(client: HttpClient) -> None:
    headers = {"Accept": "text/plain", "X-Trace": "a b"}
    async with far(lambda _got, _writer: OK) as there:
        for sent in (headers, Fixed(headers)):
            await client.get(there.url(), headers=sent, most=10)
        first, second = there.got
    assert first.headers == second.headers
    assert dict(Fixed(headers)) == headers
    assert "a b" not in repr(Fixed(headers)), "a value can be a token"


@pytest.mark.parametrize("method", ["get", "GET /", "G\r\n", "", "GÉT"])
async def test_a_method_is_one_word(client: HttpClient, method: str) -> None:
    with pytest.raises(NotSent):
        await client.send(method, "http://127.0.0.1:1/", headers={}, most=1)


async def test_proxies_of_the_environment_are_not_asked(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with far(lambda _got, _writer: OK) as proxy, far(lambda _got, _writer: OK) as there:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        await client.get(there.url(), headers={}, most=10)
        assert (len(there.got), proxy.connections) == (1, 0)
        # The guard-off control: a client that looks there does ask them.
        async with aiohttp.ClientSession(trust_env=True) as other, other.get(there.url()) as told:
            assert told.status == 200
        assert (len(there.got), proxy.connections) == (1, 1)


async def test_nobody_there_means_that_nothing_was_sent(client: HttpClient) -> None:
    with pytest.raises(NotSent, match="the connection is refused"):
        await client.get("http://127.0.0.1:1/", headers={}, most=1)


async def test_who_never_answers_is_lost_and_not_unsent(client: HttpClient) -> None:
    async def never(_got: Got, _writer: asyncio.StreamWriter) -> Said:
        await asyncio.Event().wait()
        return None

    async with far(never) as there:
        with pytest.raises(Late, match=r"did not answer within 0\.1 s"):
            await client.get(there.url(), headers={}, most=1, seconds=0.1)


def test_it_works_on_both_loops() -> None:
    async def both_ways() -> bytes:
        client = HttpClient(HERE)
        async with far(lambda _got, _writer: SHAPES["in chunks"][0]) as there:
            one = await client.send("POST", there.url(), headers={}, body=b"x" * 200_000, most=9)
            async with client.stream("GET", there.url(), headers={}, seconds=9) as two:
                found = one.body + await two.read(9)
            await client.close()
        return found

    assert asyncio.run(both_ways()) == uvloop.run(both_ways()) == b"okok"
