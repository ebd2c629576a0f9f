"""`POST /v1/call` with `Accept: text/event-stream`: a call that is told of while it runs.

Events: `queued` (a worker will run it, and the id to ask for it by), `piece` (what a streaming tool
yields), `progress` and `log` (what a tool says on its way), `lost` (how many of those were not read
in time), and last `output`, or `problem`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from toolgate.asked import Question
from toolgate.call import Output
from toolgate.errors import ToolError, ToolgateError
from toolgate.executor.people import presence
from toolgate.server import streaming
from toolgate.server.ending import ENDING
from toolgate.server.reply import Reply, Stream
from toolgate.server.streaming import event
from toolgate.tenancy.keys import not_valid

# The whole result comes at the end; what is told before is a help, not a promise.
_MOST_HELD = 1_000
_MOST_BYTES = 1_000_000
Ended = Callable[[Output], bytes]
Told = Callable[[BaseException], Reply]


class Line:
    """What is told on the way, held until it is sent."""

    def __init__(self) -> None:
        self._held: deque[bytes] = deque()
        self._bytes = 0
        self._lost = 0
        self._news = asyncio.Event()

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Nothing can be asked over REST."""
        return {}

    @property
    def wants_progress(self) -> bool:
        """Whoever reads the stream reads all of it."""
        return True

    @property
    def log_level(self) -> str:
        """All of it."""
        return "debug"

    def piece(self, value: Any) -> None:
        """A streaming tool's next one."""
        self._put("piece", {"data": value})

    def progress(self, done: float, total: float | None, message: str) -> None:
        """How far it has come."""
        self._put("progress", {"progress": done, "total": total, "message": message})

    def log(self, level: str, message: Any) -> None:
        """Something worth knowing on the way."""
        self._put("log", {"level": level, "message": message})

    def queued(self, call_id: str) -> None:
        """A worker will run it."""
        self._put("queued", {"call_id": call_id})

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Nobody answers here."""
        raise ToolError(
            f"Whoever called over REST cannot be asked ({', '.join(questions)[:80]}); "
            "use a client that takes questions, such as one of MCP."
        )

    def _put(self, name: str, data: Any) -> None:
        # As JSON at once: a tool may change what it has handed over.
        try:
            told = event(name, data)
        except TypeError:
            self._lost += 1
        else:
            self._held.append(told)
            self._bytes += len(told)
        while len(self._held) > 1 and (len(self._held) > _MOST_HELD or self._bytes > _MOST_BYTES):
            self._bytes -= len(self._held.popleft())
            self._lost += 1
        self._news.set()

    def taken(self) -> bytes:
        """All that waits."""
        self._news.clear()
        lost, self._lost = self._lost, 0
        head = event("lost", {"lost": lost}) if lost else b""
        pieces = b"".join(self._held)
        self._held.clear()
        self._bytes = 0
        return head + pieces

    async def news(self) -> None:
        """Until there is something to send."""
        await self._news.wait()


class Live:
    """One call, and who listens to it."""

    def __init__(
        self,
        run: Coroutine[Any, Any, Output],
        line: Line,
        *,
        ended: Ended,
        told: Told,
        stands: Callable[[], bool],
    ) -> None:
        """`stands` says whether who asked would still be let in."""
        self._left = asyncio.Event()
        with presence.until(self._left):
            # A task has its own copy of what holds here.
            self._task = asyncio.ensure_future(run)
        self._line = line
        self._ended = ended
        self._told = told
        self._stands = stands

    async def begun(self) -> Stream | Reply:
        """A stream from the first news on; what is refused before is a plain problem."""
        news = asyncio.ensure_future(self._line.news())
        try:
            with ENDING.told(self._left.set):
                await asyncio.wait(
                    {self._task, news},
                    timeout=streaming.HEARTBEAT_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
        except BaseException:
            self._task.cancel()
            raise
        finally:
            news.cancel()
        if self._task.done() and self._task.exception() is not None:
            self._task.result()
        return Stream(self._pieces())

    async def _pieces(self) -> AsyncGenerator[bytes]:
        news: asyncio.Future[None] = asyncio.ensure_future(self._line.news())
        try:
            while True:
                # Who waits for a person when the server is about to end is answered, too.
                with ENDING.told(self._left.set):
                    done, _ = await asyncio.wait(
                        {self._task, news},
                        timeout=streaming.HEARTBEAT_S,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                waiting = self._line.taken()
                if not self._stands():
                    yield event("problem", self._told(not_valid()).body)
                    return
                if waiting:
                    yield waiting
                elif not done:
                    yield streaming.HEARTBEAT
                if self._task.done():
                    break
                if news.done():
                    news = asyncio.ensure_future(self._line.news())
            yield self._last()
        finally:
            news.cancel()
            await self._gone()

    def _last(self) -> bytes:
        try:
            return event("output", self._ended(self._task.result()))
        except BaseException as error:  # noqa: BLE001  a tool's exit, told like any other failure
            return event("problem", self._told(error).body)

    async def _gone(self) -> None:
        """Nobody listens. Who waits for a person stops; what has begun goes on to its end, since
        nobody could say how far it got.
        """
        self._left.set()
        if not self._task.done():
            await asyncio.wait({self._task})
        if not self._task.cancelled():
            with suppress(ToolgateError):
                self._task.exception()
