"""Connections that are kept: shared, bounded, let go; and what may be sent twice."""

import asyncio
import os
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.house import HERE, until
from tests.net.far import OK, Got, Said, answer, far
from toolgate.errors import SourceUnavailable
from toolgate.net.client import HttpClient
from toolgate.net.errors import Gone, NotAllowed, NotSent
from toolgate.net.guard import Guard

pytestmark = pytest.mark.req("P2")
ROUNDS = int(os.environ.get("TOOLGATE_RACE_ROUNDS", "100"))


@pytest.fixture
async def client() -> AsyncGenerator[HttpClient]:
    one = HttpClient(HERE, timeout=20.0)
    yield one
    await one.close()


async def test_requests_at_a_time_have_a_connection_each_and_keep_them(client: HttpClient) -> None:
    async with far(lambda _got, _writer: OK) as there:
        for _ in range(3):
            await asyncio.gather(*(client.get(there.url(), headers={}, most=9) for _ in range(10)))
        assert (len(there.got), there.connections) == (30, 10)


async def test_what_may_be_repeated_is_sent_once_more_where_a_kept_connection_has_gone(
    client: HttpClient,
) -> None:
    def dies(got: Got, _writer: asyncio.StreamWriter) -> Said:
        second = sum(one.connection == got.connection for one in there.got) > 1
        return None if second else OK

    async with far(dies) as there:
        await client.get(there.url("/1"), headers={}, most=9)
        assert (await client.get(there.url("/2"), headers={}, most=9)).body == b"ok"
        assert [got.line.split()[1] for got in there.got] == ["/1", "/2", "/2"]
        with pytest.raises(Gone, match="without an answer"):
            await client.send("POST", there.url("/3"), headers={}, body=b"x", most=9)
        assert [got.line.split()[1] for got in there.got] == ["/1", "/2", "/2", "/3"]


async def test_what_cannot_be_repeated_goes_by_no_connection_that_was_idle_for_a_while(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side may be closing it at that moment."""
    async with far(lambda _got, _writer: OK) as there:
        for _ in range(2):
            await client.send("POST", there.url(), headers={}, body=b"x", most=9)
        assert there.connections == 1, "a moment ago it was used"
        monkeypatch.setattr("toolgate.net.pool._SURE_NS", 0)
        await client.send("POST", there.url(), headers={}, body=b"x", most=9)
        assert there.connections == 2
        await client.get(there.url(), headers={}, most=9)
        assert there.connections == 2, "what can be is sent by any"


async def test_it_is_repeated_once_and_no_more(client: HttpClient) -> None:
    def dies(got: Got, _writer: asyncio.StreamWriter) -> Said:
        return OK if got.line.startswith("GET /1") else None

    async with far(dies) as there:
        await client.get(there.url("/1"), headers={}, most=9)
        with pytest.raises(Gone):
            await client.get(there.url("/2"), headers={}, most=9)
        assert len(there.got) == 3


async def test_a_connection_that_was_closed_meanwhile_is_not_used(client: HttpClient) -> None:
    async def closing(_got: Got, writer: asyncio.StreamWriter) -> Said:
        writer.write(OK)
        return None

    async with far(closing) as there:
        await client.get(there.url(), headers={}, most=9)
        await until(lambda: there.open == 0)
        await asyncio.sleep(0)
        # Nothing of this kind is repeated, so it was not written into a closed connection.
        await client.send("POST", there.url(), headers={}, body=b"x", most=9)
        assert there.connections == 2


@pytest.mark.parametrize(
    "wire", [answer(b"ok", "Connection: close"), answer(b"ok", "Keep-Alive: timeout=1")]
)
async def test_one_that_is_to_be_closed_is_not_used_again(client: HttpClient, wire: bytes) -> None:
    async with far(lambda _got, _writer: wire) as there:
        for _ in range(3):
            await client.get(there.url(), headers={}, most=9)
        assert there.connections == 3


@pytest.mark.parametrize("extra", [OK, b"HTTP/1.1 500 X\r\n", b"garbage", b"\x00"])
async def test_an_answer_that_nobody_asked_for_is_nobodys(client: HttpClient, extra: bytes) -> None:
    async with far(lambda got, _writer: answer(got.line.encode()) + extra) as there:
        for path in ("/1", "/2", "/3"):
            got = await client.get(there.url(path), headers={}, most=99)
            assert got.body == f"GET {path} HTTP/1.1".encode()
        assert there.connections == 3


async def test_an_early_answer_does_not_leave_half_a_request_behind(client: HttpClient) -> None:
    """The far side says no before it has read the body, and the rest of it is not sent."""
    full: list[asyncio.StreamWriter] = []

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"no", status="413 Too Large"))
        full.append(writer)

    server = await asyncio.start_server(early, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    for number in (1, 2):
        got = await client.send("POST", url, headers={}, body=b"x" * 30_000_000, most=9)
        assert (got.status, len(full)) == (413, number)
    for writer in full:
        writer.transport.abort()
    server.close()
    await server.wait_closed()


async def test_no_more_connections_than_are_allowed_and_the_others_wait() -> None:
    go = asyncio.Event()

    async def held(_got: Got, _writer: asyncio.StreamWriter) -> Said:
        await go.wait()
        return OK

    client = HttpClient(HERE, most_connections=3)
    async with far(held) as there:
        asked = [
            asyncio.create_task(client.get(there.url(), headers={}, most=9)) for _ in range(20)
        ]
        await until(lambda: len(there.got) == 3)
        with pytest.raises(NotSent, match="did not answer within"):
            await client.get(there.url(), headers={}, most=9, seconds=0.05)
        for one in asked[10:13]:
            one.cancel()
        go.set()
        ends = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(not isinstance(end, BaseException) for end in ends) == 17
        assert there.connections == 3
    await client.close()


async def test_places_are_given_back_by_whatever_ends_badly() -> None:
    client = HttpClient(HERE, most_connections=2)

    async def silent(got: Got, _writer: asyncio.StreamWriter) -> Said:
        if "/ok" not in got.line:
            await asyncio.Event().wait()
        return OK

    async with far(silent) as there:
        for _ in range(3):
            late = (client.get(there.url(), headers={}, most=9, seconds=0.05) for _ in range(4))
            await asyncio.gather(*late, return_exceptions=True)
            gone = asyncio.create_task(client.get(there.url(), headers={}, most=9))
            await asyncio.sleep(0.01)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        for _ in range(4):
            assert (await client.get(there.url("/ok"), headers={}, most=9)).status == 200
    with pytest.raises(NotSent):
        await client.get("http://127.0.0.1:1/", headers={}, most=9)
    await client.close()


async def test_cancelling_a_request_ends_its_connection(client: HttpClient) -> None:
    async def never(_got: Got, _writer: asyncio.StreamWriter) -> Said:
        await asyncio.Event().wait()
        return None

    async with far(never) as there:
        asked = asyncio.create_task(client.get(there.url(), headers={}, most=9))
        await until(lambda: len(there.got) == 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        stream = client.stream("GET", there.url(), headers={}, seconds=9)
        streamed = asyncio.create_task(stream.__aenter__())
        await until(lambda: len(there.got) == 2)
        streamed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await streamed


async def test_what_is_not_used_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.net.pool._SWEEP", 0.01)
    monkeypatch.setattr("toolgate.net.connection._KEPT_NS", 50_000_000)
    client = HttpClient(HERE)
    async with far(lambda _got, _writer: OK) as there:
        await client.get(there.url(), headers={}, most=9)
        await until(lambda: there.open == 0)
    await client.close()


async def test_closing_lets_everything_go_and_takes_no_more() -> None:
    client = HttpClient(HERE)
    async with far(lambda _got, _writer: OK) as there:
        other = client.named(there.url())
        await asyncio.gather(*(client.get(there.url(), headers={}, most=9) for _ in range(5)))
        await client.close()
        await client.close()
        await until(lambda: there.open == 0)
        for one in (client, other):
            with pytest.raises(NotSent, match="closed"):
                await one.get(there.url(), headers={}, most=9)


async def test_a_connection_that_one_guard_allowed_is_not_another_ones() -> None:
    client = HttpClient(Guard())
    async with far(lambda _got, _writer: OK) as there:
        await client.named(there.url()).get(there.url(), headers={}, most=9)
        with pytest.raises(NotAllowed):
            await client.get(there.url(), headers={}, most=9)
        await client.named(there.url()).get(there.url(), headers={}, most=9)
        assert there.connections == 1, "those that are named alike share it"
    await client.close()


async def test_no_answer_goes_to_another_whatever_is_cancelled_or_late() -> None:
    """Requests are given up at random; each that is answered has its own answer."""
    chance = random.Random(7)  # noqa: S311  to be the same each time
    client = HttpClient(HERE, most_connections=8)

    async def echo(got: Got, _writer: asyncio.StreamWriter) -> Said:
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() * 0.02)
        # Some connections end, some answers are followed by what nobody asked for.
        body = answer(got.body, *(["Connection: close"] if chance.random() < 0.05 else []))
        return body + (OK if chance.random() < 0.05 else b"")

    async def ask(number: int) -> int:
        body = str(number).encode()
        wants: dict[str, Any] = {
            "headers": {},
            "body": body,
            "seconds": chance.choice([0.005, 20, 20]),
        }
        try:
            if number % 3:
                found = (await client.send("POST", there.url(), most=99, **wants)).body
            else:
                async with client.stream("POST", there.url(), **wants) as streamed:
                    found = await streamed.read(99)
        except SourceUnavailable:
            return 0
        assert found == body
        return 1

    async with far(echo) as there:
        asked: list[asyncio.Task[int]] = []
        for number in range(ROUNDS):
            asked.append(asyncio.create_task(ask(number)))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 0.002)
            if chance.random() < 0.2:
                chance.choice(asked).cancel()
        ends = await asyncio.gather(*asked, return_exceptions=True)
        wrong = [end for end in ends if isinstance(end, Exception)]
        assert wrong == []
        assert sum(end for end in ends if isinstance(end, int)) > ROUNDS // 4
        await until(lambda: there.open <= 8)
        await client.close()
        await until(lambda: there.open == 0)
