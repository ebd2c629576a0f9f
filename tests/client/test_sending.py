"""When a request is sent again, and when it is not."""

from typing import Any

import pytest

from toolgate.client.sending import Sending
from toolgate.errors import (
    BudgetExceeded,
    InProgress,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    StoreUnavailable,
    ToolgateError,
    ToolNotFound,
)

pytestmark = pytest.mark.req("V2")
LOST = ServerUnreachable("It broke.", sent=True)
AWAY = ServerUnreachable("It is not there.", sent=False)
SOON = RateLimited("Wait.", retry_after=0.01)


async def sent(
    answers: list[Any], *, repeatable: bool = True, seconds: float = 20.0, wait_s: float = 0.0
) -> tuple[int, Any]:
    """How often it was sent, and what came of it."""
    left = iter(answers)
    times = 0

    async def ask(_left: float) -> Any:
        nonlocal times
        times += 1
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    try:
        found = await Sending(repeatable=repeatable, seconds=seconds, wait_s=wait_s).run(ask)
    except ToolgateError as error:
        return times, error
    return times, found


async def test_what_is_answered_is_sent_once() -> None:
    assert await sent([1]) == (1, 1)
    refused = ToolNotFound("nothing")
    assert await sent([refused]) == (1, refused)


async def test_what_was_not_sent_is_sent_again_whatever_it_is() -> None:
    assert await sent([AWAY, AWAY, 1], repeatable=False) == (3, 1)


async def test_what_may_have_been_read_is_sent_again_only_where_that_is_safe() -> None:
    assert await sent([LOST, 1]) == (2, 1)
    assert await sent([LOST, 1], repeatable=False) == (1, LOST)


async def test_it_is_not_sent_for_ever() -> None:
    assert await sent([LOST] * 9) == (5, LOST)
    assert await sent([AWAY] * 9, seconds=0.01) == (1, AWAY)


@pytest.mark.parametrize(
    "error", [SOON, Overloaded("Full.", retry_after=0.01), InProgress("Runs.", retry_after=0.01)]
)
async def test_a_server_that_says_when_to_come_back_is_believed_within_the_callers_time(
    error: ToolgateError,
) -> None:
    assert await sent([error, 1], wait_s=5.0) == (2, 1)
    assert await sent([error, 1]) == (1, error), "whoever does not wait is told at once"


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("Tomorrow.", retry_after=86_400),
        BudgetExceeded("Next month.", retry_after=0.01),
        Overloaded("Full."),
        StoreUnavailable("Away."),
    ],
)
async def test_what_cannot_be_waited_for_is_told_at_once(error: ToolgateError) -> None:
    assert await sent([error, 1], wait_s=5.0) == (1, error)


async def test_only_our_own_lost_call_is_asked_about_again() -> None:
    runs = InProgress("Runs.")
    assert await sent([runs, 1]) == (1, runs), "it is somebody else's"
    assert await sent([LOST, runs, runs, 1]) == (4, 1)


@pytest.mark.parametrize("field", ["outputs", "steps"])
async def test_of_several_none_may_still_run(field: str) -> None:
    half = {field: [{"error": None}, {"error": {"code": "in_progress"}}]}
    whole = {field: [{"error": None}, {"error": {"code": "tool_error"}}]}
    assert await sent([LOST, half, whole]) == (3, whole)
    assert await sent([half]) == (1, half)


async def test_each_try_is_told_how_long_it_may_take() -> None:
    told: list[float] = []

    async def ask(left: float) -> None:
        told.append(left)
        if len(told) == 1:
            raise AWAY

    await Sending(repeatable=True, seconds=10.0, wait_s=5.0).run(ask)
    assert 15.0 >= told[0] > told[1] > 0
