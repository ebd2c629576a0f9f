"""A server that is a program here: one message a line on its standard streams."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from toolgate.asked import Line
from toolgate.errors import InputNeeded
from toolgate.protocol import INTERNAL_ERROR
from toolgate.sandbox.sandbox import Running
from toolgate.text.values import MOST
from toolgate.upstreams import message
from toolgate.upstreams.beside import Beside
from toolgate.upstreams.callers import Callers
from toolgate.upstreams.cover import Cover
from toolgate.upstreams.failures import AwayError, BrokenError, Ending, StuckError
from toolgate.upstreams.flood import BLANK, MOST_OPEN, Flood, Noise
from toolgate.upstreams.hearing import LISTEN, wanted
from toolgate.upstreams.message import Fault, Id, Json
from toolgate.upstreams.phrases import Phrases
from toolgate.upstreams.tail import Tail
from toolgate.upstreams.wire import Ear, Welcome

# A message with an image is a few megabytes; a line without an end is ended.
_MOST_LINE = 32 * 1024 * 1024
_PIECE = 256 * 1024
_GRACE = 1.0
# How long a program that asks may leave all answers lying.
_PATIENCE = 5.0
_LAST_WORDS = 0.2
_NOBODY = Fault(INTERNAL_ERROR, "Nobody can answer that now. The call will be made again.")


class Pipe:
    """One running program. It is ended with this, and so is all that it started."""

    def __init__(
        self,
        running: Running,
        ear: Ear,
        *,
        asks: frozenset[str] = frozenset(),
        secrets: Sequence[str] = (),
    ) -> None:
        """`secrets` are not shown in what it says, nor in what is told of its complaints."""
        self._running = running
        self._ear = ear
        self._asks = asks
        self._ids = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._callers = Callers()
        # One at a time: what a program does not take waits with whoever wrote it, and not here.
        self._writing = asyncio.Lock()
        self._flood = Flood()
        self._welcome = Welcome(version="", is_modern=True, capabilities={}, info={})
        self._phrases = Phrases(is_modern=True, asks=asks)
        self._beside = Beside(ear)
        self._listening = 0
        self._tail = Tail(running.stderr, secrets)
        self._cover = Cover(secrets)
        self._tasks: set[asyncio.Task[None]] = set()
        self._noise = Noise()
        self.signs = 0
        # A pipe has no session.
        self.renew: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.gone: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())

    def adopt(self, welcome: Welcome) -> None:
        """From now on its revision is spoken."""
        self._welcome = welcome
        self._phrases = Phrases(is_modern=welcome.is_modern, asks=self._asks)
        # What it left unanswered of the first words is nobody's.
        self._callers.forget()

    def repeat(self, headers: Mapping[str, Mapping[tuple[str, ...], str]]) -> None:
        """There are no headers on a pipe."""

    # What is asked.

    async def call(
        self,
        tool: str,
        args: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """A call of a tool."""
        id_ = self._ids = self._ids + 1
        body = self._phrases.call(id_, tool, args, line, meta)
        return await self._asked(id_, body, seconds, line)

    async def ask(
        self,
        method: str,
        params: Json,
        *,
        seconds: float,
        line: Line | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Json:
        """Any request."""
        id_ = self._ids = self._ids + 1
        body = self._phrases.other(id_, method, params, line, meta)
        return await self._asked(id_, body, seconds, line)

    async def tell(self, method: str, params: Json | None = None) -> None:
        """A notification."""
        await self._put(message.notification(method, params))

    async def listen(self, uris: Sequence[str]) -> None:
        """On the newer revision a request says what is to be heard; the older one tells it all."""
        if not self._welcome.is_modern:
            return
        before, self._listening = self._listening, 0
        if before:
            await self._put(message.notification("notifications/cancelled", _withdrawn(before)))
        filters = wanted(self._welcome.capabilities, uris)
        if filters:
            id_ = self._listening = self._ids = self._ids + 1
            await self._put(self._phrases.other(id_, LISTEN, {"notifications": filters}))

    async def _asked(self, id_: int, body: bytes, seconds: float, line: Line | None) -> Json:
        if self.gone.done():
            raise AwayError(self.gone.result().why)
        answer = self._waiting[id_] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._put(body, id_, line)
                said = await answer
        except (TimeoutError, asyncio.CancelledError) as given_up:
            if self._callers.leave(id_):
                self._withdraw(id_)
            elif isinstance(given_up, TimeoutError):
                raise StuckError from None
            raise
        except BrokenError as broken:
            if not self._callers.leave(id_):
                # Its turn to be written never came.
                raise AwayError(broken.why) from None
            raise
        except InputNeeded:
            # No word that it is withdrawn: it ends by the answer to its question, and says so.
            raise
        finally:
            self._callers.leave(id_)
            self._waiting.pop(id_, None)
            # Its program may have ended while nobody looked.
            if answer.done() and not answer.cancelled():
                answer.exception()
        return message.answer_of(said)

    async def _put(self, body: bytes, id_: int = 0, line: Line | None = None) -> None:
        """Written when its program has taken what came before; `id_` is of a request."""
        async with self._writing:
            await self._drained()
            if id_:
                self._callers.begin(id_, line)
            self._write(body)
            await self._drained()

    def _write(self, body: bytes) -> None:
        if not self._running.stdin.is_closing():
            self._running.stdin.write(body + b"\n")

    async def _drained(self) -> None:
        try:
            await self._running.stdin.drain()
        except OSError:
            raise BrokenError("its program takes nothing any more.") from None

    def _withdraw(self, id_: int) -> None:
        if not self.gone.done():
            self._write(message.notification("notifications/cancelled", _withdrawn(id_)))

    # What comes.

    async def _read(self) -> None:
        rest = bytearray()
        why = "its program ended."
        while piece := await self._running.stdout.read(_PIECE):
            begin = len(rest)
            rest += piece
            if b"\n" in piece:
                end = rest.rindex(b"\n", begin)
                lines = bytes(rest[:end]).split(b"\n")
                del rest[: end + 1]
                try:
                    await self._lines(lines)
                except message.TooManyError:
                    why = f"its program sent more than {MOST:,} values at once, and was ended."
                    break
            if self._flood.is_over:
                why = "its program asks without end, or says things without end, and was ended."
                break
            if len(rest) > _MOST_LINE:
                why = f"its program wrote a line of more than {_MOST_LINE:,} bytes, and was ended."
                break
            if self._noise.is_all:
                why = "its program writes what is no MCP on its standard output, and was ended."
                break
        how = await self._code()
        # Its last words may come after its end.
        await asyncio.wait({self._tail.task}, timeout=_LAST_WORDS)
        self._end(why, how)

    async def _lines(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            unasked = self._line(line)
            if unasked:
                await self._flood.said(unasked)
            if len(self._tasks) >= MOST_OPEN and not await self._answered():
                self._flood.end()
            if self._flood.is_over:
                return

    def _line(self, raw: bytes) -> float:
        """What its program wrote; how much of that it was not asked for."""
        if not raw.strip():
            return BLANK
        said = message.read(raw, self._cover)
        if said is None:
            self._noise.line()
            return 1.0
        self._noise.count = 0
        self.signs += 1
        if message.is_answer(said):
            id_ = said.get("id")
            if type(id_) is not int:
                return 1.0
            self._callers.answered(id_)
            answer = self._waiting.get(id_)
            # Late ones, second ones and strangers' go nowhere.
            if answer is None or answer.done():
                return 1.0
            answer.set_result(said)
            return 0.0
        about, line = self._callers.meant(said)
        replying = self._beside.heard(said, line)
        if replying is not None:
            self._flood.asked()
            self._later(self._replied(said["id"], replying, about))
        return 1.0

    async def _replied(
        self, asked: Id, replying: Coroutine[Any, Any, bytes], about: int | None
    ) -> None:
        try:
            try:
                body = await replying
            except InputNeeded as needed:
                # Its caller answers by calling again. What runs now has to end before that.
                body = message.error(asked, _NOBODY)
                answer = None if about is None else self._waiting.get(about)
                if answer is not None and not answer.done():
                    answer.set_exception(needed)
            await self._put(body)
        except BrokenError:
            return

    async def _answered(self) -> bool:
        """Whether its program takes any of the answers that wait for it."""
        done, _ = await asyncio.wait(
            self._tasks, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED
        )
        return bool(done)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Its end.

    async def _code(self) -> str:
        """How it ended, if it has."""
        try:
            async with asyncio.timeout(_GRACE):
                code = await self._running.wait()
        except TimeoutError:
            return "it still runs"
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def lose(self, why: str) -> None:
        """It is of no use any more; whoever keeps it closes it."""
        self._end(why, "it still runs")

    def _end(self, why: str, how: str) -> None:
        if self.gone.done():
            return
        said = self._tail.lines()
        detail = f"{why[:-1]} ({how}{f'; it said: {said[-1]}' if said else ''})."
        self.gone.set_result(Ending(why, detail, said))
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(BrokenError(why))

    async def close(self) -> None:
        """Its input ends; a program that does not end with it is ended, with all it started."""
        try:
            if not self._running.stdin.is_closing():
                self._running.stdin.close()
            async with asyncio.timeout(_GRACE):
                await self._running.wait()
        except (TimeoutError, OSError):
            pass
        finally:
            await self._running.end()
        self._end("it is closed.", "closed")
        tasks = (*self._tasks, self._reading, self._tail.task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _withdrawn(id_: int) -> Json:
    return {"requestId": id_, "reason": "Nobody waits for it any more."}
