"""Another attempt: only where it is safe, only where it can help, and not too often."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.house import ME
from tests.resilience.far import far as far_tool
from toolgate import Call, ToolError, tool
from toolgate.errors import (
    CircuitOpen,
    InvalidOutput,
    Overloaded,
    ProviderUnavailable,
    RateLimited,
    TimedOut,
    ToolgateError,
)
from toolgate.executor.resilience.retry import Retry
from toolgate.retries import ADVANCE, SHARE, Budget, pause
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

FAST = {"attempts": 3, "base_delay": 0.001, "max_delay": 0.002}


class Flaky:
    """A provider that raises what it is given, one after the other, and then answers."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.keys: list[str] = []

    def unusable(self, spec: Any) -> str | None:
        return None

    def unkeyed(self, spec: Any) -> str | None:
        return None

    async def run(self, call: Call) -> Any:
        self.keys.append(call.downstream_key)
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def spec(**more: Any) -> Any:
    return far_tool(**({"effect": "idempotent", "retry": FAST} | more))


async def called(far: Flaky, spec: Any, journal: MemoryJournal | None = None) -> Any:
    async with in_memory(providers={"far": far}, journal=journal) as house:
        house.catalog.put("far", [spec])
        try:
            return await house.call("far", caller=ME)
        except ToolgateError as error:
            return error


@pytest.mark.req("X4", "S1")
@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        ProviderUnavailable("away"),
        RateLimited("too fast", retry_after=0.001),
        TimedOut("no answer from the far side"),
        ToolError("busy", retryable=True),
        ToolError("busy", retry_after=0.001),
    ],
)
async def test_what_can_pass_is_tried_again_and_is_one_entry(error: BaseException) -> None:
    far, journal = Flaky(error, error), MemoryJournal()
    output = await called(far, spec(), journal)
    assert (output.status, output.data, len(far.keys)) == ("success", "done", 3)
    assert [str(entry.state) for entry in journal.calls] == ["succeeded"]
    assert len(set(far.keys)) == 1, "the far side knows all attempts by one key"
    assert far.keys[0]


@pytest.mark.req("X4")
@pytest.mark.parametrize(
    "error",
    [
        ToolError("there is no such order"),
        InvalidOutput("it ran"),
        CircuitOpen("left alone"),
        Overloaded("too many"),
    ],
)
async def test_what_would_only_come_again_is_not(error: BaseException) -> None:
    far = Flaky(error)
    await called(far, spec())
    assert len(far.keys) == 1


@pytest.mark.req("X4", "S1")
async def test_attempts_end_and_without_a_word_there_is_one() -> None:
    for retry, attempts in ((FAST, 3), (None, 1), ({"attempts": 1}, 1)):
        far = Flaky(*[ValueError()] * 9)
        given = far_tool(effect="idempotent", **({"retry": retry} if retry else {}))
        output = await called(far, given)
        assert (output.error.code, len(far.keys)) == ("execution_failed", attempts)


@pytest.mark.req("X4", "S1")
async def test_an_effect_that_is_not_repeatable_is_tried_again_only_under_a_key() -> None:
    keyed = spec(effect="irreversible", downstream_key={"header": "Idempotency-Key"})
    far = Flaky(ValueError())
    assert (await called(far, keyed)).ok
    assert len(set(far.keys)) == 1
    assert len(far.keys) == 2


@pytest.mark.req("X4", "S2")
@pytest.mark.parametrize(
    "last", [ToolError("declined"), ProviderUnavailable("away"), CircuitOpen("no")]
)
async def test_a_late_no_does_not_settle_an_earlier_attempt_that_may_have_happened(
    last: ToolgateError,
) -> None:
    keyed = spec(effect="irreversible", downstream_key={"header": "Idempotency-Key"})
    journal = MemoryJournal()
    far = Flaky(ValueError(), last, last)
    output = await called(far, keyed, journal)
    assert output.error.details["outcome"] == "unknown"
    assert [str(entry.state) for entry in journal.calls] == ["unknown"]
    # Guard off: where the first attempt is known to have come to nothing, so is the call.
    journal = MemoryJournal()
    await called(Flaky(last, last, last), keyed, journal)
    assert [str(entry.state) for entry in journal.calls] == ["failed"]


@pytest.mark.req("X4")
async def test_no_attempt_begins_that_has_no_time_left() -> None:
    far = Flaky(*[RateLimited("wait", retry_after=60)] * 3)
    error = await called(
        far, spec(timeout=5, retry={"attempts": 3, "base_delay": 1, "max_delay": 100})
    )
    assert isinstance(error, RateLimited), "told at once, not after a minute or a timeout"
    assert len(far.keys) == 1


@pytest.mark.req("X4")
async def test_whoever_counts_attempts_is_told_of_each() -> None:
    told: list[tuple[str, int, str]] = []
    retry = Retry(
        roll=lambda: 0.0,
        tell=lambda call, number, error: told.append((call.id, number, error.code)),
    )
    failing = [ValueError(), ProviderUnavailable("away")]

    async def inner(call: Call) -> Any:
        error = failing.pop(0) if failing else None
        if isinstance(error, ToolgateError):
            raise error
        if error is not None:
            raise TimedOut("late")
        return "done"

    @tool(effect="pure", retry=FAST)
    async def act(call: Call) -> Any:
        return await retry.link(inner)(call)

    async with in_memory(act) as house:
        assert (await house.call("act", caller=ME)).data == "done"
    assert [(number, code) for _id, number, code in told] == [
        (2, "timed_out"),
        (3, "provider_unavailable"),
    ]
    assert len({call_id for call_id, _number, _code in told}) == 1


@pytest.mark.req("X4")
@pytest.mark.parametrize("calls", [100, 1_000])
async def test_a_far_side_that_is_down_gets_a_fifth_more_calls_at_most(calls: int) -> None:
    """Without the breaker, which would let even fewer pass."""
    attempts = 0
    retry = Retry(roll=lambda: 0.0)

    async def inner(call: Call) -> Any:
        nonlocal attempts
        attempts += 1
        raise ProviderUnavailable("down")

    link = retry.link(inner)

    @tool(effect="pure", retry={"attempts": 5, "base_delay": 0.001, "max_delay": 0.001})
    async def act(call: Call) -> None:
        for _ in range(calls):
            with pytest.raises(ProviderUnavailable):
                await link(call)

    async with in_memory(act) as house:
        assert (await house.call("act", caller=ME)).ok
    assert calls < attempts <= 1.2 * calls


@given(st.lists(st.booleans(), min_size=50, max_size=400))
def test_a_budget_is_never_overdrawn(fails: list[bool]) -> None:
    budget, spent = Budget(), 0
    for number, failed in enumerate(fails, 1):
        budget.earn()
        while failed and budget.spend():
            spent += 1
        assert spent <= max(ADVANCE, SHARE * number + 1e-6)


@given(
    attempt=st.integers(1, 10_000),
    base=st.floats(0.001, 10),
    most=st.floats(0.001, 100),
    roll=st.floats(0, 1),
    asked=st.none() | st.floats(0, 1e9),
)
def test_a_pause_is_anything_up_to_its_bound_and_what_was_asked_for(
    attempt: int, base: float, most: float, roll: float, asked: float | None
) -> None:
    wait = pause(attempt, base=base, most=most, roll=roll, asked=asked)
    assert 0 <= wait <= most
    if asked is None:
        assert wait == roll * min(most, base * 2.0 ** min(attempt - 1, 62))
    else:
        assert wait >= min(asked, most)


async def test_callers_that_failed_together_do_not_come_back_together() -> None:
    rolls = iter([0.0, 0.25, 0.5, 1.0])
    waits = [pause(3, base=1, most=60, roll=next(rolls)) for _ in range(4)]
    assert waits == [0.0, 1.0, 2.0, 4.0]
    await asyncio.sleep(0)
