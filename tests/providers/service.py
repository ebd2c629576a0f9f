"""A service on loopback that notes what it was sent and answers what a test says."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

import orjson


class Seen(NamedTuple):
    """A request, as it was on the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    lines: tuple[str, ...]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b'{"ok":true}'
    media_type: str = "application/json"
    headers: Mapping[str, str] = {}
    # Where fewer bytes come than were promised, the connection ends in the middle.
    missing: int = 0


Answering: TypeAlias = Callable[[Seen], "Answer | Awaitable[Answer]"]


def answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON."""
    named = {name.replace("_", "-"): of for name, of in headers.items()}
    return Answer(status, orjson.dumps(value), headers=named)


class Service:
    """What it was asked, in order; `answers` is replaced at will."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.answers: Answering = lambda _seen: Answer()
        self.port = 0
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def say(self, *given: Answer) -> None:
        """These one after the other; the last one stays."""
        left = list(given)
        self.answers = lambda _seen: left.pop(0) if len(left) > 1 else left[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (seen := await _read(reader)) is not None:
                self.seen.append(seen)
                given = self.answers(seen)
                said = given if isinstance(given, Answer) else await given
                writer.write(_written(said, bodiless=seen.method == "HEAD"))
                await writer.drain()
                if said.missing:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head[:-4].split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): of.strip() for name, _, of in (one.partition(":") for one in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, target, headers, tuple(lines), body)


def _written(said: Answer, *, bodiless: bool) -> bytes:
    lines = [f"HTTP/1.1 {said.status} X"]
    if said.status != 204:
        lines += [
            f"Content-Length: {len(said.body) + said.missing}",
            f"Content-Type: {said.media_type}",
        ]
    lines += [f"{name}: {of}" for name, of in said.headers.items()]
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    return head if bodiless or said.status == 204 else head + said.body


@asynccontextmanager
async def service() -> AsyncGenerator[Service]:
    found = Service()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
