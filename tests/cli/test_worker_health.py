"""What a worker answers over HTTP, to whoever looks after it."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.house import open_gate, until
from toolgate.cli import health
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


@pytest.mark.req("V2")
@pytest.mark.parametrize("guarded", [True, False])
async def test_who_asks_nothing_makes_room_for_who_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, guarded: bool
) -> None:
    """Each connection is a file of the process, and calls need those."""
    monkeypatch.setattr(health, "_MOST", 8 if guarded else 1_000)
    monkeypatch.setattr(health, "_SECONDS", 60.0)
    with listen("127.0.0.1", 0) as free:
        port: int = free.getsockname()[1]
    async with open_gate(tmp_path) as gate:
        with Alarm(gate.watch.meter) as alarm, Health(gate, Place("127.0.0.1", port), alarm):
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
            for path in ("/healthz", "/readyz"):
                head, _ = await ask(port, f"GET {path}")
                assert head.startswith(b"HTTP/1.1 200 ")
            gone = [asyncio.create_task(_is_gone(reader)) for reader, _ in idle]
            if guarded:
                # The last of them have places, but for the one that was asked from.
                await until(lambda: sum(one.done() for one in gone) == 23)
                assert not gone[-1].done()
            else:
                assert not any(one.done() for one in gone)
            for _, writer in idle:
                writer.transport.abort()
            await asyncio.gather(*gone)


async def _is_gone(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        await reader.read()
