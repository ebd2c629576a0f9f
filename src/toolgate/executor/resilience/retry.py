"""Another attempt, where it is safe, can help, and there is time. Nothing else tries again."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import (
    CallRefused,
    CircuitOpen,
    ExecutionFailed,
    InputNeeded,
    OutOfTime,
    Overloaded,
    TimedOut,
    ToolError,
    ToolgateError,
)
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.outcome import outcome
from toolgate.ledger.state import State
from toolgate.retries import Budget, pause
from toolgate.spec.tool import Retry as Patience
from toolgate.spec.tool import ToolSpec

# Ours, not the far side's: trying again would make more of what there is too much of already.
_OURS = (Overloaded, CircuitOpen, OutOfTime)
_MOST_BUDGETS = 10_000
Tell = Callable[[Call, int, ToolgateError], None]


class Retry(Extension):
    """Tries again as the tool's `retry` says, inside the record: one entry for all attempts.

    `usual` is the patience with tools of a provider that say none; `tell` hears of each further
    attempt, its number and why.
    """

    priority = 460

    def __init__(
        self,
        *,
        usual: Mapping[str, Patience] = MappingProxyType({}),
        roll: Callable[[], float] = random.random,
        tell: Tell | None = None,
    ) -> None:
        self._usual = usual
        self._roll = roll
        self._tell = tell
        self._budgets: dict[str, Budget] = {}

    def link(self, inner: Handler) -> Handler:
        """A tool that does not ask for attempts passes by."""
        usual = self._usual

        def run(call: Call) -> Coroutine[Any, Any, Output]:
            spec = call.grant.spec
            patience = spec.retry or usual.get(spec.provider)
            if patience is None or patience.attempts < 2 or not _is_safe(spec):
                return inner(call)
            return self._tried(inner, call, patience)

        return run

    async def _tried(self, inner: Handler, call: Call, patience: Patience) -> Output:
        budget = self._budget(call.spec.name)
        budget.earn()
        attempt, doubt = 1, None
        while True:
            try:
                return await inner(call)
            except ToolgateError as error:
                told = error
                if doubt is None and outcome(call.spec.effect, error) is State.UNKNOWN:
                    doubt = error
            wait = self._wait(attempt, told, patience)
            left = (call.until_ns - clock.monotonic_ns()) / 1e9
            if (
                attempt >= patience.attempts
                or not _can_help(told)
                or wait >= left
                or not budget.spend()
            ):
                # That the last attempt came to nothing says nothing about an earlier one.
                raise doubt or told
            await asyncio.sleep(wait)
            attempt += 1
            if self._tell is not None:
                self._tell(call, attempt, told)

    def _wait(self, attempt: int, error: ToolgateError, patience: Patience) -> float:
        asked = error.details.get("retry_after")
        return pause(
            attempt,
            base=patience.base_delay,
            most=patience.max_delay,
            roll=self._roll(),
            asked=asked if isinstance(asked, (int, float)) else None,
        )

    def _budget(self, tool: str) -> Budget:
        found = self._budgets.get(tool)
        if found is None:
            if len(self._budgets) >= _MOST_BUDGETS:
                del self._budgets[next(iter(self._budgets))]
            found = self._budgets[tool] = Budget()
        return found


def _is_safe(spec: ToolSpec) -> bool:
    """Twice equals once, by its nature or because the far side knows it by its key."""
    return spec.effect.repeatable or spec.downstream_key is not None


def _can_help(error: ToolgateError) -> bool:
    if isinstance(error, ToolError):
        # Whoever is asked something answers by calling again.
        return error.retryable and not isinstance(error, InputNeeded)
    if isinstance(error, CallRefused):
        return error.retryable and not isinstance(error, _OURS)
    if isinstance(error, TimedOut):
        return error.produced is None
    return isinstance(error, ExecutionFailed)
