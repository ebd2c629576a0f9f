"""Tools that fetch go where the guard lets them, whatever address they are given."""

import asyncio
import itertools
import json
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.house import until
from tests.net.far import OK, Got, Said, answer, far
from tests.net.tripwire import hosts, tripwire
from tests.tools.means import means
from toolgate import clock
from toolgate.call import Call
from toolgate.errors import ExecutionFailed, ToolError, ToolgateError
from toolgate.net import guard as guarding
from toolgate.net.addresses import Address
from toolgate.net.client import HttpClient
from toolgate.net.guard import Guard
from toolgate.net.resolver import Resolver
from toolgate.tools.executor.http_fetch import http_fetch
from toolgate.tools.web.fetch_docs import fetch_docs
from toolgate.tools.web.http_get import http_get
from toolgate.tools.web.http_post import http_post

pytestmark = pytest.mark.req("T4", "P2")
DATA = Path(__file__).parents[3] / "shared" / "data" / "security" / "ssrf.json"
TOOLS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "http_get": http_get,
    "http_post": http_post,
    "http_fetch": http_fetch,
    "fetch_docs": fetch_docs,
}
# Public hosts: the one leads inwards, which is another test's; the other wants a token, which no
# caller can send.
PUBLIC = ("https://307.r3dir.me/", "https://www.googleapis.com/")
NAMES = {
    "metadata.google.internal": ["169.254.169.254"],
    "rancher-metadata": ["169.254.169.250"],
    "instance-data": ["169.254.169.254"],
    "169.254.169.254.nip.io": ["169.254.169.254"],
    "company.127.0.0.1.nip.io": ["127.0.0.1"],
    "make-1.2.3.4-rebind-169.254-169.254-rr.1u.ms": ["1.2.3.4", "169.254.169.254"],
    "localhost": ["127.0.0.1"],
    "ip6-localhost": ["::1"],
    "ip6-loopback": ["::1"],
}


async def known(host: str) -> tuple[Address, ...]:
    return tuple(ip_address(one) for one in NAMES[host])


def call(seconds: float = 20.0) -> Call:
    """As much of one as these tools look at."""
    until_ns = clock.monotonic_ns() + int(seconds * 1e9)
    return cast("Call", SimpleNamespace(until_ns=until_ns, downstream_key="k-1"))


@pytest.fixture
async def inside() -> AsyncGenerator[HttpClient]:
    """Lets out what is public, and names lead where an attacker wants them to."""
    client = HttpClient(Guard(resolver=Resolver(known)), timeout=2.0)
    yield client
    await client.close()


@pytest.fixture
async def here() -> AsyncGenerator[HttpClient]:
    """Lets out what is on this machine, by address."""
    client = HttpClient(Guard(["127.0.0.1"], resolver=Resolver(known)), timeout=5.0)
    yield client
    await client.close()


@pytest.mark.skipif(not DATA.is_file(), reason="../shared/data is not here")
@pytest.mark.parametrize("tool", TOOLS)
async def test_no_address_of_the_collection_gets_a_connection(
    tool: str, inside: HttpClient
) -> None:
    every = [one["url"] for one in json.loads(DATA.read_text("utf-8"))["items"]]
    urls = [url for url in every if not url.startswith(PUBLIC)]
    assert len(urls) >= len(every) - 2 >= 70
    with tripwire() as seen:
        for url in urls:
            with pytest.raises(ToolError) as refused:
                await TOOLS[tool](means(client=inside), call(), url=url)
            assert not refused.value.retryable, url
    assert seen == []


async def test_the_tripwire_sees_what_is_let_out(here: HttpClient) -> None:
    async with far(lambda _got, _writer: answer(b"a text", "Content-Type: text/plain")) as there:
        with tripwire() as seen:
            for tool in TOOLS.values():
                assert await tool(means(client=here), call(), url=there.url())
        assert set(seen) == {("127.0.0.1", there.port)}


async def test_without_the_check_they_would_be_reached(
    monkeypatch: pytest.MonkeyPatch, inside: HttpClient
) -> None:
    """The guard-off control; only to this machine, where nobody listens."""

    def nothing_wrong(_address: Address) -> str:
        return ""

    monkeypatch.setattr(guarding, "not_public", nothing_wrong)
    with tripwire() as seen:
        for url in ("http://127.0.0.1:1024/", "http://company.127.0.0.1.nip.io:1024/"):
            with pytest.raises(ToolgateError):
                await http_get(means(client=inside), call(), url=url)
    assert hosts(seen) == {"127.0.0.1"}


@pytest.mark.parametrize(
    "where", ["http://instance-data/", "http://[::1]/", "//10.0.0.1/", "ftp://a/"]
)
async def test_a_redirect_inwards_is_not_followed(here: HttpClient, where: str) -> None:
    said = answer(b"", f"Location: {where}", status="307 Temporary Redirect")
    async with far(lambda _got, _writer: said) as there:
        with tripwire() as seen, pytest.raises(ToolError, match="leads elsewhere"):
            await http_get(means(client=here), call(), url=there.url())
        assert seen == [("127.0.0.1", there.port)]


async def test_another_host_gets_no_header_of_the_first(here: HttpClient) -> None:
    async with far(lambda _got, _writer: OK) as second:

        def lead(_got: Got, _writer: asyncio.StreamWriter) -> Said:
            return answer(b"", f"Location: {second.url()}", status="302 Found")

        async with far(lead) as first:
            sent = {"X-Mine": "mine", "Accept-Language": "de"}
            told = await http_get(means(client=here), call(), url=first.url(), headers=sent)
            assert told["url"] == second.url()
            assert first.got[0].headers["x-mine"] == "mine"
            assert "x-mine" not in second.got[0].headers
            assert second.got[0].headers["accept-language"] == "de"


def packed(content: bytes, coding: str) -> bytes:
    made = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "bare": -15}[coding])
    return made.compress(content) + made.flush()


@pytest.mark.parametrize("tool", ["http_get", "http_post"])
@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "aes"])
async def test_what_is_packed_in_an_unknown_way_is_refused(
    here: HttpClient, tool: str, coding: str
) -> None:
    bomb = answer(packed(bytes(100), "gzip"), f"Content-Encoding: {coding}")
    async with far(lambda _got, _writer: bomb) as there:
        with pytest.raises(ExecutionFailed, match="compressed answer"):
            await TOOLS[tool](means(client=here), call(), url=there.url())
        assert there.got[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "bare"])
@pytest.mark.parametrize("size", [0, 1, 999_999, 1_000_000, 1_000_001, 50_000_000])
async def test_what_is_packed_is_unpacked_up_to_the_bound(
    here: HttpClient, coding: str, size: int
) -> None:
    raw = packed(b"x" * size, coding)
    kind = f"Content-Encoding: {coding.replace('bare', 'deflate')}"

    async def bit_by_bit(_got: Got, writer: asyncio.StreamWriter) -> Said:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{kind}\r\n\r\n".encode()
        for piece in (head, raw[:1], raw[1:]):
            writer.write(piece)
            await writer.drain()
        return None

    async with far(bit_by_bit) as there:
        told = await http_get(means(client=here), call(), url=there.url(), limit=1_000_000)
    assert told["text"] == "x" * min(size, 1_000_000)
    assert told["cut"] is (size > 1_000_000)
    assert told["size"] == (None if told["cut"] else size)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"no such thing", "cannot be unpacked"),
        (packed(b"text" * 1_000, "gzip")[:-5], "ends before its end"),
        (packed(b"text", "gzip")[:5] + b"\xff" * 50, "cannot be unpacked"),
        (b"\x1f", "ends before its end"),
    ],
)
async def test_what_is_packed_badly_is_told(here: HttpClient, raw: bytes, says: str) -> None:
    async with far(lambda _got, _writer: answer(raw, "Content-Encoding: gzip")) as there:
        with pytest.raises(ToolError, match=says):
            await http_get(means(client=here), call(), url=there.url())


async def test_what_is_packed_and_holds_nothing_has_an_end(here: HttpClient) -> None:
    """Empty blocks, one after the other: nothing comes of them, and they would go on for ever."""
    empty = b"\x00\x00\x00\xff\xff" * 10_000

    async def endless(_got: Got, writer: asyncio.StreamWriter) -> Said:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n")
        for _ in itertools.count():
            writer.write(empty)
            await writer.drain()
        return None

    async with far(endless) as there:
        told = await http_get(means(client=here), call(), url=there.url())
        assert (told["cut"], told["text"]) == (True, "")
        await until(lambda: there.open == 0)


async def test_a_body_without_an_end_is_cut_and_told(here: HttpClient) -> None:
    async def endless(_got: Got, writer: asyncio.StreamWriter) -> Said:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        for _ in itertools.count():
            writer.write(b"x" * 65_536)
            await writer.drain()
        return None

    async with far(endless) as there:
        told = await http_get(means(client=here), call(), url=there.url(), limit=10)
        assert told["cut"]
        assert told["length"] == 1_000_000
        assert told["size"] is None
        await until(lambda: there.open == 0)


async def test_a_picture_is_not_even_fetched(here: HttpClient) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 10737418240\r\n\r\n"
    async with far(lambda _got, _writer: head) as there:
        told = await http_get(means(client=here), call(), url=there.url())
        assert (told["kind"], told["size"]) == ("binary", 10_737_418_240)
        await until(lambda: there.open == 0)


async def test_a_post_whose_answer_is_lost_is_not_sent_again(here: HttpClient) -> None:
    answers = iter([OK, None, OK])
    async with far(lambda _got, _writer: next(answers)) as there:
        one = means(client=here)
        assert (await http_post(one, call(), url=there.url(), json={"a": 1}))["ok"]
        with pytest.raises(ExecutionFailed, match="may have taken effect"):
            await http_post(one, call(), url=there.url(), json={"a": 2})
        assert [got.body for got in there.got] == [b'{"a":1}', b'{"a":2}']
        assert there.got[0].headers["idempotency-key"] == "k-1"


async def test_a_call_ends_with_its_time_also_where_more_was_asked_for(here: HttpClient) -> None:
    async def silent(_got: Got, _writer: asyncio.StreamWriter) -> Said:
        await asyncio.Event().wait()

    async with far(silent) as there:
        with pytest.raises(ToolError, match="did not answer within") as late:
            await http_get(means(client=here), call(0.4), url=there.url(), timeout=50)
        assert late.value.retryable
