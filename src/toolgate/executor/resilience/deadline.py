"""A call ends in time. What was not over by then is not known to have happened or not."""

import asyncio
import contextlib
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from typing import Any

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import OutOfTime, Overloaded, TimedOut
from toolgate.executor.extension import Extension, Handler
from toolgate.stepped import rest

_OVERDUE = "the call took too long"
# How long a call that was told to end may take to be over and on record, when the house closes.
_LAST_WORDS = 2.0
NEVER = 2**63
_PAUSE_NS = 1_000_000


# The calls that the running code is inside of: until when they go on, how many they are, and whose.
# A plain tuple: anything with names takes several times as long to make.
_NOWHERE = (NEVER, 0, "")
_around: ContextVar[tuple[int, int, str]] = ContextVar("toolgate_around", default=_NOWHERE)


def latest_ns() -> int:
    """Until when a call that is made here can go on."""
    return _around.get()[0]


def depth() -> int:
    """How many calls the running code is inside of."""
    return _around.get()[1]


def tenant() -> str:
    """Whose call the running code is inside of; empty where it is in none."""
    return _around.get()[2]


@contextlib.contextmanager
def within(until_ns: int) -> Generator[None]:
    """Calls made in here end by then, also where they would have more time of their own."""
    outer = _around.get()
    _around.set((min(until_ns, outer[0]), outer[1], outer[2]))
    try:
        yield
    finally:
        _around.set(outer)


def is_overdue(error: BaseException | None) -> bool:
    """Whether a cancellation came from the deadline, and not from the caller."""
    return isinstance(error, asyncio.CancelledError) and error.args == (_OVERDUE,)


class Deadline(Extension):
    """Ends a call that takes longer than its tool, the setting, or the call around it allows."""

    priority = 150

    def __init__(self) -> None:
        self._waiting: set[_Limit] = set()
        # One for all of them, at the earliest: a timer for each costs more than most calls.
        self._alarm = _Alarm(self._waiting)
        # Set once the house closes; told when nothing waits any more.
        self._idle: asyncio.Event | None = None

    def link(self, inner: Handler) -> Handler:
        """Around everything that waits."""

        async def run(call: Call) -> Output:
            outer = _around.get()
            if call.until_ns <= call.began_ns or self._idle is not None:
                self._refuse(call, is_inside=outer[1] > 0)
            _around.set((call.until_ns, outer[1] + 1, call.grant.caller.tenant))
            try:
                work = inner(call)
                # A timer costs more than a whole call that never waits: start it when it has to.
                try:
                    waiting = work.send(None)
                except StopIteration as done:
                    return done.value
                return await self._in_time(call, work, waiting)
            finally:
                # A token could not be handed back where the coroutine is closed elsewhere.
                _around.set(outer)

        return run

    async def drain(self, patience: float) -> None:
        """No new calls from here on. Those that run get so much time; then theirs is over."""
        self._idle = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            if self._waiting:
                async with asyncio.timeout(patience):
                    await self._idle.wait()
        for limit in self._waiting:
            limit.expire()
        with contextlib.suppress(TimeoutError):
            if self._waiting:
                async with asyncio.timeout(_LAST_WORDS):
                    await self._idle.wait()

    def _refuse(self, call: Call, *, is_inside: bool) -> None:
        if call.until_ns <= call.began_ns:
            raise out_of_time(call)
        # What runs may finish, and what it needs for that.
        if not is_inside:
            raise Overloaded(f"This gate is closing; {call.spec.name!r} did not run.")

    async def _in_time(self, call: Call, work: Coroutine[Any, Any, Output], waiting: Any) -> Output:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  what waits on a loop is in a task
        limit = _Limit(call.until_ns, task)
        self._waiting.add(limit)
        self._alarm.set(call.until_ns, task.get_loop())
        try:
            output = await rest(work, waiting, limit.thrown)
        except BaseException as error:
            if limit.taken_back() and isinstance(error, asyncio.CancelledError):
                raise timed_out(call) from None
            raise
        else:
            limit.taken_back()
            return output
        finally:
            self._waiting.discard(limit)
            if self._idle is not None and not self._waiting:
                self._idle.set()


class _Limit:
    """Until when one call may wait. Then its task is cancelled, as `asyncio.timeout` would."""

    __slots__ = ("_cancelling", "_task", "expired", "until_ns")

    def __init__(self, until_ns: int, task: "asyncio.Task[Any]") -> None:
        self.until_ns = until_ns
        self.expired = False
        self._task = task
        self._cancelling = task.cancelling()

    def expire(self) -> None:
        """Its time is over."""
        if not self.expired:
            self.expired = True
            self._task.cancel()

    def thrown(self, error: BaseException) -> None:
        """What its task hears because of it can be told from what others cancel it for."""
        if self.expired and isinstance(error, asyncio.CancelledError):
            # A class of our own would not be a cancellation to a task group.
            error.args = (_OVERDUE,)

    def taken_back(self) -> bool:
        """Whether it has cancelled the task, and nobody else has: that holds no longer."""
        return self.expired and self._task.uncancel() <= self._cancelling


class _Alarm:
    """Goes off at the earliest limit of all that wait, and then for the next one."""

    def __init__(self, waiting: set[_Limit]) -> None:
        self._waiting = waiting
        self._at_ns = NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def set(self, until_ns: int, loop: asyncio.AbstractEventLoop) -> None:
        """Not later than that."""
        if until_ns < self._at_ns or loop is not self._loop:
            self._start(until_ns, loop)

    def _start(self, until_ns: int, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at_ns, self._loop = until_ns, loop
        seconds = max((until_ns - clock.monotonic_ns()) / 1e9, 0)
        self._timer = loop.call_later(seconds, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._at_ns = None, NEVER
        now, next_ns = clock.monotonic_ns(), NEVER
        for limit in self._waiting:
            if limit.until_ns <= now:
                limit.expire()
            else:
                next_ns = min(next_ns, limit.until_ns)
        if next_ns != NEVER:
            # Not at once: where many end one after the other, each ring looks at all of them.
            self._start(max(next_ns, now + _PAUSE_NS), loop)


def out_of_time(call: Call) -> OutOfTime:
    """It was not begun."""
    return OutOfTime(
        f"There was no time left to begin {call.spec.name!r}: what it waited for, or the call "
        "around it, took all of it. Nothing ran."
    )


def timed_out(call: Call, produced: Any = None, *, seconds: float = 0.0) -> TimedOut:
    """What the caller is told; only a repeatable tool may simply be tried again.

    `seconds`: what it had, where that was less than the call's own time.
    """
    name, seconds = call.spec.name, seconds or (call.until_ns - call.began_ns) / 1e9
    if call.spec.effect.repeatable:
        told = (
            f"{name!r} took longer than {seconds:.3g} s and is not waited for any more. "
            "You may try again."
        )
    else:
        told = (
            f"{name!r} took longer than {seconds:.3g} s. It may have taken effect: check before "
            "you call it again."
        )
    return TimedOut(told, produced=produced)
