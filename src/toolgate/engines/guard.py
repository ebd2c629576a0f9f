"""A remote engine behind a breaker: while it is open, the answer is no at once, not a wait."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from toolgate import clock
from toolgate.breaker import Breaker, Limits, Outcome, State
from toolgate.errors import ToolgateError

T = TypeVar("T")
# A list of tools asks a few questions at once: the first few failures are enough to know.
ENGINE = Limits(window=20, at_least=5, failed_share=0.5, wait=1.0, probes=1, patience=10.0)


class Guarded:
    """Asks through a breaker. `unavailable` is both what counts as an outage and what is raised."""

    def __init__(
        self,
        unavailable: type[ToolgateError],
        what: str,
        *,
        limits: Limits = ENGINE,
        now_ns: Callable[[], int] = clock.monotonic_ns,
    ) -> None:
        self._unavailable = unavailable
        self._what = what
        self._now_ns = now_ns
        self._breaker = Breaker(limits)

    @property
    def open(self) -> bool:
        """Whether nothing is asked at the moment."""
        return self._breaker.state(self._now_ns()) is State.OPEN

    async def __call__(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, or `unavailable`; at once where the last ones failed."""
        permit = self._breaker.enter(self._now_ns())
        if permit is None:
            raise self._unavailable(
                f"The {self._what} has failed too often and is left alone for a moment; nothing "
                "ran. Try again shortly."
            )
        outcome = Outcome.IGNORED
        try:
            answer = await ask()
            outcome = Outcome.SUCCEEDED
        except self._unavailable:
            outcome = Outcome.FAILED
            raise
        finally:
            # A call that was cancelled says nothing about the engine.
            self._breaker.leave(permit, self._now_ns(), outcome)
        return answer
