"""A server that means ill: a client is not kept busy, and meets errors of ours."""

import asyncio
from typing import Any

import orjson
import pytest

from tests.client.far_side import LOOPBACK, answer, far_side
from tests.client.test_sending import sent
from toolgate.client.identity import Me
from toolgate.client.listening import LOST, Listening
from toolgate.client.reading import read_chain
from toolgate.client.remote import Remote
from toolgate.client.sending import is_under_way
from toolgate.client.wire import Wire
from toolgate.errors import RateLimited, ServerUnreachable

pytestmark = pytest.mark.req("V2")
ODD: list[Any] = [
    None,
    5,
    "x",
    [1],
    {"tools": 5},
    {"tools": ["x"], "people": []},
    {"tools": [{}], "people": 1},
]
EVENT: dict[str, Any] = {
    "id": "evt_1",
    "kind": "call.ended",
    "at_ns": 1,
    "tenant": "acme",
    "agent": "a",
    "tool": "echo",
    "call_id": "call_1",
}


@pytest.mark.parametrize("told", [0, -5, 1e-9])
async def test_a_server_cannot_have_itself_asked_without_a_pause(told: float) -> None:
    refused = [RateLimited("Now.", retry_after=told)] * 1_000
    times, error = await sent([*refused], wait_s=1.0)
    assert isinstance(error, RateLimited)
    assert times <= 10


@pytest.mark.parametrize("body", ODD)
async def test_a_list_of_another_shape_is_an_error_of_ours(body: Any) -> None:
    async with far_side(answer(200, body)) as side, Wire(side.url, "tg_x") as wire:
        with pytest.raises(ServerUnreachable, match="does not fit"):
            await Remote(wire, Me(tenant="acme", role="agent", agent="a")).discover()


@pytest.mark.parametrize("cursor", ["same", 5])
async def test_pages_without_end_are_not_read_for_ever(cursor: Any) -> None:
    page: dict[str, Any] = {"tools": [], "people": [], "next": cursor}
    async with far_side(answer(200, page)) as side, Wire(side.url, "tg_x") as wire:
        with pytest.raises(ServerUnreachable, match="does not fit"):
            await Remote(wire, Me(tenant="acme", role="agent", agent="a")).discover()
        assert len(side.heard) <= 2


CHAINS: list[Any] = [None, [], {"steps": 5}, {"steps": [5]}, {"steps": [{}]}]


@pytest.mark.parametrize("told", CHAINS)
def test_a_chain_of_another_shape_is_an_error_of_ours(told: Any) -> None:
    with pytest.raises(ServerUnreachable):
        read_chain(told)
    assert not is_under_way(told)


@pytest.mark.parametrize("bad", [b"{bad json", b"[]", b'{"id": 5}'])
async def test_an_event_that_cannot_be_read_does_not_end_them_silently(bad: bytes) -> None:
    """What was missed is told, and the next connection goes on."""
    good = b"data: " + orjson.dumps(EVENT) + b"\n\n"
    answers = [b"data: " + bad + b"\n\n", good]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = answers.pop(0) if answers else b""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + body)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Wire(f"http://{LOOPBACK}:{port}", "tg_x") as wire:
        news = Listening(wire, None)
        assert (await anext(news)).kind == LOST
        assert (await anext(news)).call_id == "call_1"
        await news.aclose()
