"""The same call, many times at once, in several processes: it happens once, and all are told so."""

import asyncio
import os
import random
from typing import Any

import pytest

from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Hand, Staff

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(600)]
KEYS = int(os.environ.get("TOOLGATE_ONCE_KEYS", "250"))
PROCESSES = 4
AT_ONCE = 32


async def test_four_processes_do_each_of_many_calls_once_and_answer_alike(
    staff: Staff, recorder: Recorder, books: Books
) -> None:
    hands = [await staff.start(lease=15.0) for _ in range(PROCESSES)]
    # The first call of a process opens its connections and compiles its statements.
    for number, hand in enumerate(hands):
        assert (await hand.call("put", f"first{number}"))["status"] == "success"
    keys = [f"k{number}" for number in range(KEYS)]
    answers = await asyncio.gather(*(_asked(hand, keys, one) for one, hand in enumerate(hands)))
    refused = [one for each in answers for one in each.values() if one["status"] != "success"]
    assert refused == []
    numbers = recorder.numbers("pay")
    assert len(numbers) == KEYS
    assert set(recorder.counts("pay").values()) == {1}
    for key in keys:
        each = [answer[key] for answer in answers]
        assert [one["data"] for one in each] == [{"number": numbers[key]}] * PROCESSES
        assert len({one["call"] for one in each}) == 1
        assert [one["cached"] for one in each].count(False) == 1
    rows = [row for row in await books.rows() if row.tool == "pay"]
    assert sorted(row.of for row in rows) == sorted(keys)
    assert {(row.state, row.fence) for row in rows} == {("succeeded", 1)}


async def _asked(hand: Hand, keys: list[str], seed: int) -> dict[str, Any]:
    """All of them, so many at a time: a process that first reads thousands of lines runs none."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(key: str) -> Any:
        async with room:
            return await hand.call("pay", key)

    order = _shuffled(keys, seed)
    return dict(zip(order, await asyncio.gather(*map(one, order)), strict=True))


def _shuffled(keys: list[str], seed: int) -> list[str]:
    # Nearly in step, so that they meet; not quite, so that each leads at times.
    order = random.Random(seed)  # noqa: S311  the same order each time
    return sorted(keys, key=lambda key: int(key[1:]) + order.uniform(0, 16))
