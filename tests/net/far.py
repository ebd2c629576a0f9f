"""The far side: a server that says exactly the bytes it is told to, and remembers what it got."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Got(NamedTuple):
    """One request as it came, and which connection brought it."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


# Bytes to answer with, or what answers by itself; nothing closes the connection.
Said = bytes | None
Script = Callable[[Got, asyncio.StreamWriter], Awaitable[Said] | Said]


class Far:
    """What is known of it while it runs."""

    def __init__(self, port: int, scheme: str) -> None:
        self.port = port
        self.scheme = scheme
        self.got: list[Got] = []
        self.connections = 0
        self.open = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def far(
    script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[Far]:
    """A server of this script on a free port."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known.connections += 1
        known.open += 1
        number = known.connections
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    got = await _read(reader, number)
                    known.got.append(got)
                    said = script(got, writer)
                    said = said if isinstance(said, bytes) or said is None else await said
                    if said is None:
                        break
                    writer.write(said)
                    await writer.drain()
        finally:
            known.open -= 1
            writer.close()

    running: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(talk(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(begin, host, 0, ssl=tls)
    known = Far(server.sockets[0].getsockname()[1], "https" if tls else "http")
    try:
        yield known
    finally:
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader, number: int) -> Got:
    head = await reader.readuntil(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
    found = _LENGTH.search(head)
    body = await reader.readexactly(int(found[1])) if found else b""
    return Got(line, headers, body, number)


def answer(body: bytes = b"ok", *headers: str, status: str = "200 OK") -> bytes:
    """An answer of these parts, with its length."""
    lines = "".join(f"{line}\r\n" for line in headers)
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    return head.encode("latin-1") + body
