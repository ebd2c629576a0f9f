"""Messages one after the other, on an answer that stays open."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing, suppress
from typing import Any

from toolgate.server.body import Receive
from toolgate.server.headers import SAFE

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
    *SAFE,
]
# A proxy closes what is silent for longer.
BEAT = 15.0
_BEAT = b": still here\n\n"
# What is kept for who reads slowly, or comes back: so many messages, of so many bytes together.
_MOST_KEPT = 1_000
_MOST_BYTES = 1_000_000


class Stream:
    """What is to be sent, numbered. It can be read by one, let go, and read on by another."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.is_closed = False
        # What has been put so far, and the newest of it.
        self._count = 0
        self._kept: deque[bytes] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._reader: asyncio.Event | None = None

    @property
    def size(self) -> int:
        """How many bytes it keeps."""
        return self._bytes

    @property
    def is_read(self) -> bool:
        """Whether somebody who came for it has not let it go yet."""
        return self._reader is not None

    def take(self) -> asyncio.Event:
        """Read it from now on, until this is set: somebody else has come for it."""
        if self._reader is not None:
            self._reader.set()
        self._reader = asyncio.Event()
        return self._reader

    def let_go(self, reader: asyncio.Event) -> None:
        """Who took it does not read it any more."""
        if self._reader is reader:
            self._reader = None

    @property
    def count(self) -> int:
        """How many were put so far."""
        return self._count

    @property
    def is_empty(self) -> bool:
        """Whether nothing was put yet."""
        return self._count == 0

    def put(self, message: bytes) -> None:
        """One more message."""
        self._count += 1
        self._kept.append(message)
        self._bytes += len(message)
        # The newest stays, however large it is: it may be the answer.
        while len(self._kept) > 1 and (self._bytes > _MOST_BYTES or len(self._kept) > _MOST_KEPT):
            self._bytes -= len(self._kept.popleft())
        self._news.set()

    def close(self) -> None:
        """No more will come."""
        self.is_closed = True
        self._news.set()

    def behind(self, number: int) -> list[tuple[int, bytes]]:
        """What is kept of what came after this one, each with its own number."""
        first = self._count - len(self._kept) + 1
        numbered = enumerate(self._kept, first)
        return [(at, message) for at, message in numbered if at > number]

    async def changed(self) -> None:
        """Until something was put, or it was closed."""
        await self._news.wait()

    async def read(self, after: int = 0) -> AsyncGenerator[tuple[int, bytes] | None]:
        """Messages behind this number, each with its own; `None` where there is only silence.

        Who comes too late for some of them goes on with the oldest that is kept.
        """
        while True:
            self._news.clear()
            first = self._count - len(self._kept) + 1
            for number in range(max(after + 1, first), self._count + 1):
                oldest = self._count - len(self._kept) + 1
                if number < oldest:
                    continue
                yield number, self._kept[number - oldest]
                after = number
            if after < self._count and self._kept:
                continue
            if self.is_closed:
                return
            try:
                async with asyncio.timeout(BEAT):
                    await self._news.wait()
            except TimeoutError:
                yield None


def event(message: bytes, id_: str = "") -> bytes:
    """One message as the wire has it."""
    named = f"id: {id_}\n".encode() if id_ else b""
    return b"%bevent: message\ndata: %b\n\n" % (named, message)


def priming(id_: str) -> bytes:
    """What a client can come back with, before there is anything to say."""
    return f"id: {id_}\ndata: \n\n".encode()


async def write(
    send: Send, stream: Stream, *, after: int = 0, named: bool = False, more: bytes = b""
) -> None:
    """All of a stream. `named`: each message bears an id by which the rest can be asked for."""
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    if more:
        await body(send, more)
    async with aclosing(stream.read(after)) as messages:
        async for one in messages:
            if one is None:
                await body(send, _BEAT)
                continue
            number, message = one
            await body(send, event(message, f"{stream.id}.{number}" if named else ""))
    with suppress(OSError):
        await send({"type": "http.response.body", "body": b""})


async def body(send: Send, raw: bytes) -> None:
    """A piece of an answer that goes on."""
    await send({"type": "http.response.body", "body": raw, "more_body": True})


async def write_until(gone: "asyncio.Task[None]", send: Send, stream: Stream) -> None:
    """All of a stream, or as much of it as the client stays for."""
    writing = asyncio.create_task(write(send, stream))
    try:
        await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        writing.cancel()


async def left(receive: Receive) -> None:
    """Until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
