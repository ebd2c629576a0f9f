"""A call ends in time. What was not over by then is not known to have happened or not."""

import asyncio
import contextlib
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from types import coroutine
from typing import Any, TypeVar

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import OutOfTime, Overloaded, TimedOut
from toolgate.executor.extension import Extension, Handler

T = TypeVar("T")
_OVERDUE = "the call took too long"
# How long a call that was told to end may take to be over and on record, when the house closes.
_LAST_WORDS = 2.0


# The calls that the running code is inside of: until when they go on, and how many they are.
# A plain pair: anything with names takes several times as long to make.
_NOWHERE = (2**63, 0)
_around: ContextVar[tuple[int, int]] = ContextVar("toolgate_around", default=_NOWHERE)


def latest_ns() -> int:
    """Until when a call that is made here can go on."""
    return _around.get()[0]


def depth() -> int:
    """How many calls the running code is inside of."""
    return _around.get()[1]


@contextlib.contextmanager
def within(until_ns: int) -> Generator[None]:
    """Calls made in here end by then, also where they would have more time of their own."""
    outer = _around.get()
    _around.set((min(until_ns, outer[0]), outer[1]))
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
        self._waiting: set[asyncio.Timeout] = set()
        # Set once the house closes; told when nothing waits any more.
        self._idle: asyncio.Event | None = None

    def link(self, inner: Handler) -> Handler:
        """Around everything that waits."""

        async def run(call: Call) -> Output:
            outer = _around.get()
            if call.until_ns <= call.began_ns or self._idle is not None:
                self._refuse(call, is_inside=outer[1] > 0)
            _around.set((call.until_ns, outer[1] + 1))
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
        now = asyncio.get_running_loop().time()
        for limit in self._waiting:
            if not limit.expired():
                limit.reschedule(now)
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
        limit = asyncio.timeout(max((call.until_ns - clock.monotonic_ns()) / 1e9, 0))
        self._waiting.add(limit)
        try:
            async with limit:
                return await _rest(work, waiting, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise timed_out(call) from None
        finally:
            self._waiting.discard(limit)
            if self._idle is not None and not self._waiting:
                self._idle.set()


@coroutine
def _rest(
    work: Coroutine[Any, Any, T], waiting: Any, limit: asyncio.Timeout
) -> Generator[Any, Any, T]:
    """Await a coroutine that has been started and waits for `waiting`."""
    try:
        while True:
            try:
                sent = yield waiting
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001  a cancellation belongs to the coroutine
                if isinstance(error, asyncio.CancelledError) and limit.expired():
                    # A class of our own would not be a cancellation to a task group.
                    error.args = (_OVERDUE,)
                waiting = work.throw(error)
            else:
                waiting = work.send(sent)
    except StopIteration as done:
        return done.value


def out_of_time(call: Call) -> OutOfTime:
    """It was not begun."""
    return OutOfTime(
        f"There was no time left to begin {call.spec.name!r}: what it waited for, or the call "
        "around it, took all of it. Nothing ran."
    )


def timed_out(call: Call, produced: Any = None) -> TimedOut:
    """What the caller is told; only a repeatable tool may simply be tried again."""
    name, seconds = call.spec.name, (call.until_ns - call.began_ns) / 1e9
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
