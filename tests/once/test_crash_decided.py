"""Killed after what was decided or reserved, and before it counts: the next try begins anew."""

import asyncio
from typing import Any

import pytest

from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Hand, Staff
from tests.once.test_crash_steps import KILLS, gone, in_turns

pytestmark = [pytest.mark.req("S2", "S3", "X9"), pytest.mark.timeout(300)]
KEYS = [f"k{number}" for number in range(KILLS)]
FULL = "budget_exceeded"


async def test_killed_once_it_was_allowed_a_retry_is_decided_by_what_is_true_then(
    staff: Staff, recorder: Recorder, books: Books
) -> None:
    async def die(number: int) -> None:
        hand = await staff.start("CP2", lease=60.0)
        assert await hand.call("pay", KEYS[number]) is None
        await gone(hand)

    await in_turns(die)
    fresh = await staff.start()
    await fresh.ask(verb="switch", tool="pay", enabled=False)
    refused = await asyncio.gather(*(fresh.call("pay", key) for key in KEYS))
    assert {(one["status"], one["code"]) for one in refused} == {("refused", "tool_not_found")}
    assert recorder.effects() == []
    assert await books.rows() == []
    # The control: it was the switch, and nothing that the dead have left.
    await fresh.ask(verb="switch", tool="pay", enabled=True)
    done = await asyncio.gather(*(fresh.call("pay", key) for key in KEYS))
    assert {one["status"] for one in done} == {"success"}
    assert recorder.counts("pay") == dict.fromkeys(KEYS, 1)


async def test_killed_with_a_part_of_a_budget_it_comes_back_and_is_spent_once(
    staff: Staff, recorder: Recorder
) -> None:
    fresh = await staff.start()
    await fresh.ask(verb="budget", most=KILLS)

    async def die(number: int) -> None:
        hand = await staff.start("CP3")
        # What others have died with is theirs until their lease is over.
        assert await unless_full(hand, KEYS[number]) is None
        await gone(hand)

    await in_turns(die)
    assert (await fresh.ask(verb="usage"))["used"] == 0
    assert recorder.effects() == []
    for key in KEYS:
        assert (await unless_full(fresh, key))["status"] == "success", "nothing of it is lost"
    assert (await fresh.ask(verb="usage"))["used"] == KILLS
    # Nothing was given back twice either: the budget is used up, and stays so.
    assert (await fresh.call("pay", "more"))["code"] == FULL
    assert recorder.counts("pay") == dict.fromkeys(KEYS, 1)


async def unless_full(hand: Hand, key: str) -> Any:
    """The answer, once there is something of the budget to be had."""
    async with asyncio.timeout(60):
        while True:
            answer = await hand.call("pay", key)
            if answer is None or answer["code"] != FULL:
                return answer
            await asyncio.sleep(0.05)
