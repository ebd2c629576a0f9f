"""TLS: who cannot prove who it is gets nothing."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.net.far import OK, Got, Said, far
from tests.servers.authority import Authority
from toolgate.net.client import HttpClient
from toolgate.net.dial import verified
from toolgate.net.errors import Lost, NotSent
from toolgate.net.guard import Guard

pytestmark = pytest.mark.req("P2")
HERE = Guard(["localhost", "127.0.0.1"])


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


async def got(client: HttpClient, url: str) -> bytes:
    try:
        return (await client.get(url, headers={"Authorization": "s3cret"}, most=9)).body
    finally:
        await client.close()


async def test_who_proves_who_it_is_is_asked(authority: Authority, tmp_path: Path) -> None:
    tls = authority.server(tmp_path, "localhost", "127.0.0.1")
    async with far(lambda _got, _writer: OK, tls=tls) as there:
        for host in ("localhost", "127.0.0.1"):
            client = HttpClient(HERE, tls=authority.believed())
            assert await got(client, there.url("/", host)) == b"ok"


@pytest.mark.parametrize(
    ("names", "days", "known", "why"),
    [
        (["localhost"], -1, "known", "expired"),
        (["other.example"], 1, "known", "mismatch"),
        (["localhost"], 1, "", "unable to get local issuer"),
    ],
)
async def test_who_does_not_gets_nothing(
    authority: Authority, tmp_path: Path, names: list[str], days: int, known: str, why: str
) -> None:
    tls = authority.server(tmp_path, *names, days=days)
    async with far(lambda _got, _writer: OK, tls=tls) as there:
        client = HttpClient(HERE, tls=authority.believed() if known else None)
        with pytest.raises(NotSent, match=f"does not prove who it is: .*{why}"):
            await got(client, there.url("/", "localhost"))
        assert there.got == []
        careless = ssl.create_default_context()
        careless.check_hostname = False
        careless.verify_mode = ssl.CERT_NONE
        off = HttpClient(HERE, tls=careless)
        assert await got(off, there.url("/", "localhost")) == b"ok", "the guard-off control"


async def test_a_server_without_tls_gets_nothing(authority: Authority) -> None:
    got_bytes: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got_bytes.append(await reader.read(5))
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"
    with pytest.raises(NotSent, match="cannot be reached"):
        await got(HttpClient(HERE, tls=authority.believed()), url)
    assert [one[:1] for one in got_bytes] == [b"\x16"], "a greeting of TLS, and nothing else"
    server.close()
    await server.wait_closed()


def test_only_a_present_tls_that_proves_names_is_spoken() -> None:
    assert verified().minimum_version >= ssl.TLSVersion.TLSv1_2
    assert verified().verify_mode is ssl.CERT_REQUIRED
    assert verified().check_hostname


WITHOUT_LENGTH = b"HTTP/1.0 200 OK\r\n\r\nall"


async def to_its_end(_got: Got, writer: asyncio.StreamWriter) -> Said:
    writer.write(WITHOUT_LENGTH)
    return None


@contextmanager
def cut(tls: ssl.SSLContext) -> Generator[int]:
    """The port of a server that says the same, and is gone without the end that TLS has."""

    def serve() -> None:
        sock, _ = listening.accept()
        with tls.wrap_socket(sock, server_side=True) as talking:
            talking.recv(65_536)
            talking.sendall(WITHOUT_LENGTH)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_an_answer_that_is_cut_off_is_not_taken_for_a_whole_one(
    authority: Authority, tmp_path: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    """Without a length, only a proper end of TLS tells that nobody on the way has cut it."""

    async def both() -> None:
        tls = authority.server(tmp_path, "localhost")
        async with far(to_its_end, tls=tls) as there:
            client = HttpClient(HERE, tls=authority.believed())
            assert await got(client, there.url("/", "localhost")) == b"all"
        with cut(tls) as port:
            client = HttpClient(HERE, tls=authority.believed())
            with pytest.raises(Lost, match="in the middle"):
                await got(client, f"https://localhost:{port}/")

    run(both())
