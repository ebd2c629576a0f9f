"""Events of a server, as they come: Server-Sent Events, read line by line."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Self

import orjson

from toolgate import clock
from toolgate.call import Event
from toolgate.client.reading import read, understood
from toolgate.client.wire import Wire
from toolgate.errors import ServerUnreachable, ToolgateError

LOST = "events.lost"
_MOST_HELD = 1_000
_MOST_LINE = 4 * 1024 * 1024
_PAUSE = 0.5
_LONGEST_PAUSE = 10.0


class Listening(AsyncIterator[Event]):
    """Events from the moment this was made: `async for event in gate.events()`.

    Who reads too slowly loses the oldest, and is told how many by an event `events.lost`. So is
    whoever was cut off from the server for a while, where nobody can say how many there were.
    """

    def __init__(self, wire: Wire, tenant: str | None) -> None:
        self._wire = wire
        self._query = {"tenant": tenant}
        self._held: deque[Event] = deque()
        self._error: ToolgateError | None = None
        self._news = asyncio.Event()
        self._over: Callable[[Self], object] | None = None
        self._lost = 0
        self._is_heard = False
        self._task = asyncio.create_task(self._listen())
        self._task.add_done_callback(self._ended)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._held:
            if self._error is not None:
                raise self._error
            if self._task.done():
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return _lost(lost)
        return self._held.popleft()

    async def ready(self) -> Self:
        """Until the server is heard: what happens from then on is told."""
        while not self._is_heard:
            if self._error is not None:
                raise self._error
            if self._task.done():
                break
            self._news.clear()
            await self._news.wait()
        return self

    def when_over(self, tell: Callable[[Self], object]) -> None:
        """Told once nothing more comes."""
        self._over = tell

    def close(self) -> None:
        """No more comes; what is held can still be read."""
        self._task.cancel()

    async def aclose(self) -> None:
        """Close, and wait until the connection is gone."""
        self.close()
        with suppress(asyncio.CancelledError):
            await self._task

    def _ended(self, _task: object) -> None:
        self._news.set()
        if self._over is not None:
            self._over(self)

    def _put(self, event: Event) -> None:
        if len(self._held) >= _MOST_HELD:
            self._held.popleft()
            self._lost += 1
        self._held.append(event)
        self._news.set()

    async def _listen(self) -> None:
        pause = _PAUSE
        while True:
            try:
                await self._read()
                pause = _PAUSE
            except ServerUnreachable:
                pause = min(2 * pause, _LONGEST_PAUSE)
            except ToolgateError as error:
                # A key that is not let in is not let in by asking again.
                self._error = error
                return
            if self._is_heard:
                # What happens until it is heard again nobody has counted.
                self._is_heard = False
                self._put(_lost(None))
            await asyncio.sleep(pause)

    async def _read(self) -> None:
        """One connection to its end."""
        async with self._wire.stream("/v1/events", query=self._query) as answer:
            self._is_heard = True
            self._news.set()
            data: list[bytes] = []
            size = 0
            async for line in _lines(answer.content.iter_any()):
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                    size += len(line)
                    if size > _MOST_LINE:
                        raise ServerUnreachable("An event of the server has no end.", sent=True)
                elif not line and data:
                    # One that cannot be read ends the connection, and what is missed is told.
                    with understood():
                        self._put(read(orjson.loads(b"\n".join(data)), Event))
                    data, size = [], 0


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > _MOST_LINE:
            raise ServerUnreachable("A line of the server's events has no end.", sent=True)


def _lost(number: int | None) -> Event:
    now = clock.unix_ns()
    payload: dict[str, Any] = {"lost": number}
    return Event(
        id=f"evt_lost_{now:x}",
        kind=LOST,
        at_ns=now,
        tenant="",
        agent="",
        tool="",
        call_id="",
        payload=payload,
    )
