"""How long something is tried in a worker before something else is.

The worker itself is ended from outside when all of it takes too long; this is for a part of it.
"""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class TookTooLong(BaseException):
    """It was not done in time. What is tried may catch every error, so that this is none."""


@contextmanager
def patience(seconds: float) -> Generator[None]:
    """Raise `TookTooLong` in the block after so many seconds; in a process's main thread alone."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, late)
    # Whoever had set it before is woken a bit later.
    left, again = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left, again)
