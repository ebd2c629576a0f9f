"""The answer to one request where it comes as a stream: what comes before it, and its rest."""

import asyncio
import random
from typing import TYPE_CHECKING

from toolgate import clock
from toolgate.asked import Line
from toolgate.net.client import Streaming
from toolgate.net.errors import Gone, Late, Lost, NotSent
from toolgate.retries import pause
from toolgate.upstreams import message
from toolgate.upstreams.aside import quietly
from toolgate.upstreams.events import MOST, EndlessError, Events
from toolgate.upstreams.failures import BrokenError
from toolgate.upstreams.flood import BLANK, ENDLESS
from toolgate.upstreams.hearing import LEAST_PAUSE
from toolgate.upstreams.message import Json

if TYPE_CHECKING:
    from toolgate.upstreams.http import Http

# How often a stream that broke off is asked for again, without anything new in between.
_COMEBACKS = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


class Streamed:
    """Of the request `id_`; `line` is whoever waits for it."""

    def __init__(self, http: "Http", id_: int, line: Line | None) -> None:
        self._http = http
        self._id = id_
        self._line = line
        self._events = Events()

    async def result(self, answer: Streaming, until_ns: int) -> Json:
        """What comes before the answer, and the answer; where the stream breaks off, its rest."""
        events = self._events
        found = await self._read(answer)
        comebacks = 0
        while found is None:
            left = (until_ns - clock.monotonic_ns()) / 1e9
            if not events.last or self._http.welcome.is_modern or comebacks >= _COMEBACKS:
                raise BrokenError("its stream ended before the answer.")
            wait = events.retry
            if wait is None:
                roll = random.random()  # noqa: S311  no secret
                wait = pause(comebacks + 1, base=_FIRST_PAUSE, most=_LONGEST_PAUSE, roll=roll)
            wait = max(wait, LEAST_PAUSE)
            if left <= wait:
                await asyncio.sleep(max(left, 0))
                raise Late("did not answer")
            await asyncio.sleep(wait)
            comebacks += 1
            last = events.last
            found = await self._resumed(left - wait)
            if events.last != last:
                comebacks = 0
        return found

    async def _resumed(self, seconds: float) -> Json | None:
        http, events = self._http, self._events
        head = {**http.head_for(""), "Accept": "text/event-stream", "Last-Event-ID": events.last}
        del head["Content-Type"]
        events.begin()
        try:
            async with http.client.stream("GET", http.url, headers=head, seconds=seconds) as answer:
                if answer.status in {401, 403} and await http.met(answer, head):
                    # A token that ended meanwhile: the rest is had with the next one.
                    return None
                if answer.status != 200:
                    raise BrokenError(f"the rest of its stream is not there ({answer.status}).")
                return await self._read(answer)
        except (NotSent, Gone):
            return None

    async def _read(self, answer: Streaming) -> Json | None:
        """The answer, or `None` where the stream ends before it."""
        try:
            async for piece in answer:
                for event in self._events.feed(piece):
                    said = message.read(event.data, self._http.cover)
                    if said is not None and message.is_answer(said) and said.get("id") == self._id:
                        return message.answer_of(said)
                    await self._beside(said)
                await self._paced(self._events.lines * BLANK)
        except EndlessError:
            raise BrokenError(
                f"it sends more than {MOST:,} bytes in one event, or lines without end."
            ) from None
        except Late:
            raise
        except Lost:
            return None
        return None

    async def _beside(self, said: Json | None) -> None:
        """What is not the answer."""
        http = self._http
        replying = None if said is None else http.beside.heard(said, self._line, self._id)
        if replying is not None:
            http.flood.asked()
            # Here, and not aside: what a person has to answer can end the call.
            await quietly(http.replied(replying))
        await self._paced(1.0)

    async def _paced(self, much: float) -> None:
        flood = self._http.flood
        await flood.said(much)
        if flood.is_over:
            self._http.lose(ENDLESS)
            raise BrokenError("it says things without end.")
