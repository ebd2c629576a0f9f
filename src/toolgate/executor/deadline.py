"""A call ends in time. What was not over by then is not known to have happened or not."""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import TimedOut
from toolgate.executor.extension import Extension, Handler

T = TypeVar("T")
_OVERDUE = "the call took too long"


def is_overdue(error: BaseException) -> bool:
    """Whether a cancellation came from the deadline, and not from the caller."""
    return isinstance(error, asyncio.CancelledError) and error.args == (_OVERDUE,)


class Deadline(Extension):
    """Cancels a call that takes longer than its tool, or the setting, allows."""

    priority = 150

    def __init__(self, default: float) -> None:
        self._default = default

    def link(self, inner: Handler) -> Handler:
        """Around everything that waits."""
        default = self._default

        async def run(call: Call) -> Output:
            work = inner(call)
            # A timer costs more than a whole call that never waits: start it when it has to.
            try:
                waiting = work.send(None)
            except StopIteration as done:
                return done.value
            limit = asyncio.timeout(max((call.until_ns - clock.monotonic_ns()) / 1e9, 0))
            try:
                async with limit:
                    return await _rest(work, waiting, limit)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise _timed_out(call, call.grant.spec.timeout or default) from None

        return run


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


def _timed_out(call: Call, seconds: float) -> TimedOut:
    """What the caller is told; only a repeatable tool may simply be tried again."""
    name = call.spec.name
    if call.spec.effect.repeatable:
        return TimedOut(
            f"{name!r} took longer than {seconds:g} s and is not waited for any more. "
            "You may try again."
        )
    return TimedOut(
        f"{name!r} took longer than {seconds:g} s. It may have taken effect: check before you "
        "call it again."
    )
