"""Coroutines that are begun by hand: one that has nothing to wait for costs no more than a call."""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def _unchanged(_error: BaseException) -> None:
    """It goes on as it came."""


@coroutine
def rest(
    work: Coroutine[Any, Any, T],
    waiting: Any,
    thrown: Callable[[BaseException], None] = _unchanged,
) -> Generator[Any, Any, T]:
    """Await a coroutine that has been started and waits for `waiting`.

    `thrown` is shown what is thrown into it, such as a cancellation, before the coroutine is.
    """
    try:
        while True:
            try:
                sent = yield waiting
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001  it belongs to the coroutine
                thrown(error)
                waiting = work.throw(error)
            else:
                waiting = work.send(sent)
    except StopIteration as done:
        return done.value
