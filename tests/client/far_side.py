"""A far side that answers as it is told to, byte for byte: what no server of ours would do."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson

LOOPBACK = "127.0.0.1"


class FarSide:
    """Says what is next on its list to each request, and keeps what it was asked."""

    def __init__(self, answers: list[bytes | None]) -> None:
        """`None`: the connection is closed instead."""
        self._answers = answers
        self.heard: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                sizes = [
                    int(line.partition(":")[2])
                    for line in head.splitlines()
                    if line.lower().startswith("content-length:")
                ]
                body = await reader.readexactly(sizes[0]) if sizes else b""
                self.heard.append(head + body.decode())
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.transport.abort()


def answer(status: int, body: Any, *headers: str) -> bytes:
    """A whole answer with a JSON body; bytes go as they are."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    lines = [f"HTTP/1.1 {status} OK", f"Content-Length: {len(raw)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


@asynccontextmanager
async def far_side(*answers: bytes | None) -> AsyncGenerator[FarSide]:
    """One that says these, and goes on with the last."""
    side = FarSide(list(answers))
    server = await asyncio.start_server(side.accept, LOOPBACK, 0)
    side.port = server.sockets[0].getsockname()[1]
    try:
        yield side
    finally:
        server.close()
        await server.wait_closed()
