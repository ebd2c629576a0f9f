"""Hosts that a program may reach or not: servers on loopback under made-up names."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from ipaddress import ip_address

import msgspec

from toolgate.net.addresses import Address
from toolgate.net.guard import Guard
from toolgate.net.resolver import Resolver
from toolgate.sandbox.egress.proxy import Proxy
from toolgate.sandbox.egress.reach import Reach

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"


class Far(msgspec.Struct, kw_only=True):
    """A server that keeps what it is sent, whatever name led to it."""

    port: int = 0
    sent: list[bytes] = []
    looked_up: list[str] = []
    ended: int = 0

    def guard(self, *allow: str) -> Guard:
        """Every name leads to it; it is private, and allowed unless other places are given."""

        async def lookup(host: str) -> tuple[Address, ...]:
            self.looked_up.append(host)
            return (ip_address("127.0.0.1"),)

        return Guard(allow or ("127.0.0.1/32",), resolver=Resolver(lookup))


@asynccontextmanager
async def far() -> AsyncGenerator[Far]:
    """It answers what looks like a request, and holds what does not."""
    found = Far()
    open_now: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        answered = False
        with contextlib.suppress(OSError):
            while not answered and (piece := await reader.read(65_536)):
                found.sent.append(piece)
                asked = b"".join(found.sent[-2:])
                ending = b"body" if b"content-length" in asked else (b"\r\n\r\n", b"body")
                answered = piece.endswith(ending)
        if answered:
            writer.write(ANSWER)
        else:
            found.ended += 1
        writer.close()
        open_now.discard(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for writer in open_now:
            writer.transport.abort()
        # A line that was taken up as its program ended is closed a few turns of the loop later.
        await asyncio.sleep(0.05)


@asynccontextmanager
async def proxied(hosts: Iterable[str], guard: Guard) -> AsyncGenerator[int]:
    """The port of a proxy that is not in any sandbox."""
    proxy = Proxy(Reach.to(hosts), guard)
    listener = socket.create_server(("127.0.0.1", 0))
    await proxy.serve(listener)
    try:
        yield listener.getsockname()[1]
    finally:
        proxy.close()
        # A line that was taken up as its program ended is closed a few turns of the loop later.
        await asyncio.sleep(0.05)


async def said(port: int, *pieces: bytes) -> bytes:
    """What comes back until the end, when this is sent piece by piece."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    with contextlib.suppress(OSError):
        for number, piece in enumerate(pieces):
            if number:
                got += await reader.readuntil(b"\r\n\r\n")
            writer.write(piece)
        got += await reader.read()
    writer.close()
    return got


def hello(name: str | None) -> bytes:
    """The first message of TLS to a host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    line = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        line.do_handshake()
    return outgoing.read()
