"""Time and size: whatever the far side sends, it is bounded while it comes in."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

import pytest

from tests.house import HERE, until
from tests.net.far import Got, Said, far
from toolgate.net.client import HttpClient
from toolgate.net.errors import Late, Lost

pytestmark = pytest.mark.req("P2")
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
MANY = b"x" * 65_536
CHUNK = b"10000\r\n" + MANY + b"\r\n"


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    one = HttpClient(HERE, timeout=20.0)
    yield one
    await one.close()


class Sender:
    """Sends pieces one after the other, and knows how much of it went out."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]], pause: float = 0) -> None:
        self.pieces = pieces
        self.pause = pause
        self.sent = 0

    async def __call__(self, _got: Got, writer: asyncio.StreamWriter) -> Said:
        for piece in self.pieces():
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)
            await asyncio.sleep(self.pause)
        return None


ENDLESS: Mapping[str, tuple[Callable[[], Iterator[bytes]], str]] = {
    "a body": (lambda: itertools.chain([HEAD + b"\r\n"], itertools.repeat(MANY)), "more than"),
    "chunks": (lambda: itertools.chain([CHUNKED], itertools.repeat(CHUNK)), "more than"),
    "headers": (
        lambda: itertools.chain([HEAD], (b"X-%d: y\r\n" % at for at in itertools.count())),
        "headers that are too long",
    ),
    "one header": (
        lambda: itertools.chain([HEAD + b"X: "], itertools.repeat(MANY)),
        "headers that are too long",
    ),
    "a name of one": (lambda: itertools.chain([HEAD], itertools.repeat(MANY)), "too long"),
    "interim answers": (
        lambda: itertools.repeat(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
        "headers that are too long",
    ),
    "trailers": (
        lambda: itertools.chain([CHUNKED + b"0\r\n"], itertools.repeat(b"X: y\r\n")),
        "headers that are too long",
    ),
    "one trailer": (
        lambda: itertools.chain([CHUNKED + b"0\r\nX: "], itertools.repeat(MANY)),
        "headers that are too long",
    ),
    "an extension of a chunk": (
        lambda: itertools.chain([CHUNKED + b"1;x="], itertools.repeat(MANY)),
        "headers that are too long",
    ),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_never_ends_is_cut_off_by_its_size(client: HttpClient, what: str) -> None:
    pieces, said = ENDLESS[what]
    sender = Sender(pieces)
    async with far(sender) as there:
        with pytest.raises(Lost, match=said):
            await client.get(there.url(), headers={}, most=100_000)
        await until(lambda: there.open == 0)
        assert sender.sent < 20_000_000


async def test_a_length_that_is_too_much_is_refused_before_it_comes(client: HttpClient) -> None:
    sender = Sender(lambda: iter([HEAD + b"Content-Length: 10737418240\r\n\r\n"]))
    async with far(sender) as there:
        with pytest.raises(Lost, match="sends more than 100 bytes"):
            await client.get(there.url(), headers={}, most=100)


@pytest.mark.parametrize(
    "begins", [b"HTTP/1.1 200 ", HEAD, HEAD + b"Content-Length: 99\r\n\r\n", CHUNKED]
)
async def test_byte_by_byte_ends_when_the_time_is_over(client: HttpClient, begins: bytes) -> None:
    slow = Sender(lambda: itertools.chain([begins], itertools.repeat(b"1")), 0.03)
    async with far(slow) as there:
        with pytest.raises(Late, match=r"did not answer within 0\.2 s"):
            await client.get(there.url(), headers={}, most=100, seconds=0.2)
        await until(lambda: there.open == 0)


async def test_one_that_is_late_does_not_end_another(client: HttpClient) -> None:
    slow = Sender(lambda: itertools.chain([HEAD + b"\r\n"], itertools.repeat(b"1")), 0.02)

    async def by_path(got: Got, writer: asyncio.StreamWriter) -> Said:
        return (
            await slow(got, writer) if "slow" in got.line else HEAD + b"Content-Length: 0\r\n\r\n"
        )

    async with far(by_path) as there:
        late = client.get(there.url("/slow"), headers={}, most=10_000, seconds=0.3)
        waiting = asyncio.create_task(late)
        async with client.stream("GET", there.url("/slow"), headers={}, seconds=None) as endless:
            with pytest.raises(Late):
                await waiting
            assert (await client.get(there.url("/"), headers={}, most=1)).status == 200
            assert await anext(endless), "what has no end in time goes on"


async def test_a_stream_has_an_end_in_time_too(client: HttpClient) -> None:
    slow = Sender(lambda: itertools.chain([CHUNKED], itertools.repeat(b"1\r\nx\r\n")), 0.02)
    async with far(slow) as there:
        async with client.stream("GET", there.url(), headers={}, seconds=0.2) as answer:
            assert answer.status == 200
            with pytest.raises(Late):
                await answer.read(100_000)
        await until(lambda: there.open == 0)


async def test_what_nobody_reads_is_not_taken_from_the_wire(client: HttpClient) -> None:
    sender = Sender(lambda: itertools.chain([CHUNKED], itertools.repeat(CHUNK)))
    async with far(sender) as there:
        async with client.stream("GET", there.url(), headers={}, seconds=20) as answer:
            assert (await anext(answer)).startswith(b"x")
            before = -1
            while before != sender.sent:
                before = sender.sent
                for _ in range(50):
                    await asyncio.sleep(0.002)
            assert before < 30_000_000, "the rest waits at the far side"
            read = 0
            while read < 2 * before:
                read += len(await anext(answer))
        await until(lambda: there.open == 0)


async def test_a_stream_read_as_a_whole_is_bounded(client: HttpClient) -> None:
    sender = Sender(lambda: itertools.chain([CHUNKED], itertools.repeat(CHUNK)))
    async with far(sender) as there:
        async with client.stream("GET", there.url(), headers={}, seconds=20) as answer:
            with pytest.raises(Lost, match="sends more than 200,000 bytes"):
                await answer.read(200_000)
        await until(lambda: there.open == 0)


async def test_small_chunks_are_no_attack(client: HttpClient) -> None:
    """An event stream of single bytes has more around it than in it."""
    sender = Sender(lambda: iter([CHUNKED, b"1\r\nx\r\n" * 100_000, b"0\r\n\r\n"]))
    async with far(sender) as there:
        assert len((await client.get(there.url(), headers={}, most=100_000)).body) == 100_000
