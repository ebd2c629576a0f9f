"""Threads for functions that block. A stuck tool keeps neither the process alive nor others out."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

# Raised on the loop, any other would stop it.
_CARRIED = (Exception, SystemExit, asyncio.CancelledError)


class NotBegun(Exception):
    """No thread takes the work: it will never run. `error`: because whoever waited has gone."""

    def __init__(self, error: asyncio.CancelledError | None = None) -> None:
        super().__init__()
        self.error = error


class _Job:
    __slots__ = ("context", "done", "given_up", "has_begun", "loop", "of", "work")

    def __init__(self, work: Callable[[], Any], of: str) -> None:
        self.work = work
        self.of = of
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Any] = self.loop.create_future()
        self.has_begun = False
        self.given_up = False


class Threads:
    """Starts a thread when none is idle, up to a bound, and keeps it. Nothing waits for one.

    A thread cannot be stopped, so that one whose caller has gone stays taken until its work is
    over. `each` bounds what one tool can take, so that it gets stuck by itself.
    """

    def __init__(self, most: int = 256, each: int = 64) -> None:
        self._most = most
        self._each = each
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0
        self._busy: dict[str, int] = {}

    async def run(self, work: Callable[[], Any], *, of: str = "") -> Any:
        """Run work of a tool off the loop. If the caller stops waiting, it goes on to its end."""
        job = _Job(work, of)
        with self._lock:
            self._take(of)
            self._jobs.put(job)
            # Whoever asks takes an idle thread off the count: two never rely on the same one.
            if self._idle:
                self._idle -= 1
            else:
                self._count += 1
                name = f"toolgate-tool-{self._count}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        try:
            return await job.done
        except asyncio.CancelledError as error:
            with self._lock:
                job.given_up = not job.has_begun
            # A function can raise the same; then it has begun.
            if job.given_up:
                raise NotBegun(error) from error
            raise

    def close(self) -> None:
        """Idle threads end; a busy one ends with its work."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _take(self, of: str) -> None:
        taken = self._busy.get(of, 0)
        if taken >= self._each or (not self._idle and self._count >= self._most):
            raise NotBegun
        self._busy[of] = taken + 1

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._lock:
                # What nobody waits for any more is not begun.
                job.has_begun = not job.given_up
            if job.has_begun:
                value, error = None, None
                try:
                    value = job.context.run(job.work)
                except BaseException as raised:  # noqa: BLE001  told to whoever waits
                    error = raised
                _answer(job, value, error)
            with self._lock:
                self._idle += 1
                left = self._busy[job.of] - 1
                if left:
                    self._busy[job.of] = left
                else:
                    del self._busy[job.of]
            # Held while it waits for the next, it would keep the function's values alive.
            del job


def _answer(job: _Job, value: Any, error: BaseException | None) -> None:
    def resolve() -> None:
        if job.done.done():
            return
        if error is None:
            job.done.set_result(value)
        elif isinstance(error, _CARRIED) and not isinstance(error, StopIteration):
            job.done.set_exception(error)
        else:
            job.done.set_exception(RuntimeError(f"the function raised {type(error).__name__}"))

    try:
        job.loop.call_soon_threadsafe(resolve)
    except RuntimeError:
        # The loop is gone; nobody waits any more.
        return
