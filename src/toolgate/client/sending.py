"""When a request is sent again: where nothing was sent, where nothing ran, and where doing it twice
equals doing it once. Never otherwise.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

from toolgate import clock
from toolgate.errors import CallRefused, InProgress, ServerUnreachable, ToolgateError

Ask = Callable[[float], Awaitable[Any]]
# So often a lost request is sent again.
_MOST_LOST = 4
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


class Sending:
    """One request, sent as often as it may be within its time.

    `repeatable`: it can be sent again though it may have been read. `wait_s`: how long its caller
    waits where the server says when to come back.
    """

    def __init__(self, *, repeatable: bool, seconds: float, wait_s: float) -> None:
        now = clock.monotonic_ns()
        self._repeatable = repeatable
        self._until_ns = now + round((seconds + wait_s) * 1e9)
        self._patient_ns = now + round(wait_s * 1e9)
        self._lost = 0
        self._may_run = False
        self._pause = _FIRST_PAUSE

    async def run(self, ask: Ask) -> Any:
        """The answer to the first one that is answered; `ask` is told how long it may take."""
        while True:
            try:
                answer = await ask(self._left())
                if not (self._may_run and is_under_way(answer)) or self._left() <= self._pause:
                    return answer
                pause = self._next_pause()
            except ToolgateError as error:
                pause = self._before_next(error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    def _before_next(self, error: ToolgateError) -> float | None:
        """How long to wait before it is sent again; `None` where it is not."""
        told = _retry_after(error)
        if isinstance(error, ServerUnreachable):
            may_have_run = error.details.get("sent") is not False
            self._may_run = self._may_run or may_have_run
            self._lost += 1
            if self._lost > _MOST_LOST or (may_have_run and not self._repeatable):
                return None
            pause = max(self._next_pause(), told or 0.0)
            return pause if pause < self._left() else None
        if isinstance(error, InProgress) and self._may_run:
            # It is our own, the one whose answer was lost.
            pause = self._next_pause()
            return pause if pause < self._left() else None
        if told is None or not (error.retryable and isinstance(error, CallRefused)):
            return None
        # Nothing ran, and the server has said when to come back. Whatever it says, it is not asked
        # without a pause.
        pause = max(told, self._next_pause())
        return pause if clock.monotonic_ns() + pause * 1e9 < self._patient_ns else None

    def _left(self) -> float:
        return max((self._until_ns - clock.monotonic_ns()) / 1e9, 0.001)

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        # Many clients of a server that comes back do not come at once.
        return pause * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def _retry_after(error: ToolgateError) -> float | None:
    told: object = error.details.get("retry_after")
    return float(told) if isinstance(told, (int, float)) else None


def is_under_way(answer: Any) -> bool:
    """Whether one of several calls still runs since the request whose answer was lost."""
    if not isinstance(answer, dict):
        return False
    told = cast("dict[str, Any]", answer)
    several = told.get("outputs") or told.get("steps")
    return isinstance(several, list) and any(map(_waits, cast("list[object]", several)))


def _waits(one: object) -> bool:
    error = cast("dict[str, Any]", one).get("error") if isinstance(one, dict) else None
    code = cast("dict[str, Any]", error).get("code") if isinstance(error, dict) else None
    return code == InProgress.code
