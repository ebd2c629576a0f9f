"""What a worker answers over HTTP, to whoever looks after it."""

import asyncio
from pathlib import Path

import pytest

from tests.house import open_gate
from toolgate.cli.health import Health, Place
from toolgate.cli.listen import AddressInUse, listen
from toolgate.server.alarm import Alarm


async def ask(port: int, asked: str) -> tuple[bytes, bytes]:
    """The head and the body of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{asked} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return head, body


@pytest.mark.req("V2")
async def test_the_head_alone_is_told_to_who_asks_for_it(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as free:
        port: int = free.getsockname()[1]
    async with open_gate(tmp_path) as gate:
        with Alarm(gate.watch.meter) as alarm, Health(gate, Place("127.0.0.1", port), alarm):
            for path in ("/healthz", "/readyz"):
                whole, body = await ask(port, f"GET {path}")
                assert whole.startswith(b"HTTP/1.1 200 ")
                assert b"Content-Length: %d" % len(body) in whole
                assert await ask(port, f"HEAD {path}") == (whole, b"")
            for asked in ("POST /healthz", "HEAD /", "GET /nothing", "HEAD"):
                head, _ = await ask(port, asked)
                assert head.startswith(b"HTTP/1.1 404 ")


@pytest.mark.req("V5")
async def test_a_port_that_is_taken_is_told_with_the_option_that_names_it(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        where = Place("127.0.0.1", taken.getsockname()[1])
        async with open_gate(tmp_path) as gate:
            with Alarm(gate.watch.meter) as alarm, pytest.raises(AddressInUse) as found:
                Health(gate, where, alarm).__enter__()
    assert found.value.message.endswith("--health HOST:PORT")
