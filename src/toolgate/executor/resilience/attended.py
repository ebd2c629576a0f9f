"""A tool's coroutine that cannot outlast its deadline, also when it takes no notice of it."""

import asyncio
import logging
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from toolgate.executor.resilience.deadline import is_overdue

T = TypeVar("T")
log = logging.getLogger("toolgate.tools")
# How long a tool may take to clean up once it was told to stop. More for one that waits for a
# call of its own: that one's end is on record before this one is ended by force.
_GRACE = 0.1
_MORE = 0.04
# How many in a task were told to stop, the innermost first.
_stopping: dict[asyncio.Task[Any], int] = {}
# Coroutines that would not even be closed. Held here, because to drop one is to close it again.
_stubborn: list[Coroutine[Any, Any, Any]] = []


class Stopped(BaseException):
    """Thrown into a tool that was asked to stop and did not. It is no cancellation to catch."""


class _Watch:
    """Gives a tool that was told to stop its time, then takes the task back from it."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a tool runs in a task")
        self._task = task
        self._cancels = task.cancelling()
        self._timer: asyncio.TimerHandle | None = None
        self.told: asyncio.CancelledError | None = None
        self.is_over = False

    def begin(self, error: asyncio.CancelledError) -> None:
        if self.told is None:
            before = _stopping.get(self._task, 0)
            _stopping[self._task] = before + 1
            self.told = error
            grace = _GRACE + _MORE * before
            self._timer = asyncio.get_running_loop().call_later(grace, self._end)

    def _end(self) -> None:
        self._timer = None
        # A timeout of the tool's own is a cancellation too, and is taken back by whoever set it.
        if is_overdue(self.told) or self._task.cancelling() > self._cancels:
            self.is_over = True
            self._task.cancel()
        else:
            self._forget()

    def _forget(self) -> None:
        self.told = None
        _stopping[self._task] -= 1
        if not _stopping[self._task]:
            del _stopping[self._task]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.told is not None:
            self._forget()
        if self.is_over:
            self._task.uncancel()


@coroutine
def attended(work: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Await a tool's coroutine that waits for `waiting`. It runs in its caller's task."""
    watch = _Watch()
    try:
        while True:
            try:
                sent = yield waiting
            except GeneratorExit:
                _close(work)
                raise
            except BaseException as error:  # noqa: BLE001  it belongs to the coroutine
                if watch.is_over:
                    _close(work)
                    raise (watch.told or error) from None
                waiting = work.throw(error)
                # It still waits; what it waits for has begun its own time before.
                if isinstance(error, asyncio.CancelledError):
                    watch.begin(error)
            else:
                waiting = work.send(sent)
    except StopIteration as done:
        return done.value
    finally:
        watch.stop()


def _close(work: Coroutine[Any, Any, Any]) -> None:
    try:
        # Closing alone would not reach a generator that the coroutine waits for.
        work.throw(Stopped())
        work.close()
    except (Stopped, StopIteration):
        return
    except RuntimeError:
        _stubborn.append(work)
        log.warning("a tool took no notice of being stopped, and was left as it was")
    except BaseException as error:  # noqa: BLE001  it has nothing to say any more
        log.warning("a tool failed with %s when it was stopped", type(error).__name__)
