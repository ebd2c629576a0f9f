"""Threads for functions that block. A stuck tool cannot keep the process alive."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

# Raised on the loop, any other would stop it.
_CARRIED = (Exception, SystemExit, asyncio.CancelledError)


class _Job(NamedTuple):
    work: Callable[[], Any]
    context: contextvars.Context
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]"


class Threads:
    """Starts a thread when none is idle, up to a bound, and keeps it."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run work off the loop. If the caller stops waiting, the work still goes on to its end."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            self._jobs.put(_Job(work, contextvars.copy_context(), loop, done))
            # Whoever asks takes an idle thread off the count: two never rely on the same one.
            if self._idle:
                self._idle -= 1
            elif self._count < self._most:
                self._count += 1
                name = f"toolgate-tool-{self._count}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        return await done

    def close(self) -> None:
        """Idle threads end; a busy one ends with its work."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            # What nobody waits for any more is not begun.
            if not job.done.cancelled():
                value, error = None, None
                try:
                    value = job.context.run(job.work)
                except BaseException as raised:  # noqa: BLE001  told to whoever waits
                    error = raised
                _answer(job, value, error)
            with self._lock:
                self._idle += 1


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
