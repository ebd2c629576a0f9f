"""Workers killed at any moment, under load: nothing acknowledged is lost, nothing is done twice."""

import asyncio
import os
import random

import pytest

from tests.once.books import Books
from tests.once.load import Load
from tests.once.recorder import Recorder
from tests.once.staff import Hand, Staff

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(900)]
KILLS = int(os.environ.get("TOOLGATE_ONCE_RANDOM_KILLS", "12"))
WORKERS = 3
LOOPS = 2
LEASE = 2.0


async def test_random_kills_under_load_lose_nothing_and_double_nothing(
    staff: Staff, recorder: Recorder, books: Books
) -> None:
    load, dice = Load(), random.Random(3)  # noqa: S311  the same dice each time
    hands: list[Hand | None] = [await staff.start(lease=LEASE) for _ in range(WORKERS)]

    def worker(number: int) -> Hand | None:
        return hands[number]

    def looping(number: int) -> asyncio.Task[None]:
        return asyncio.create_task(load.go_on(lambda: worker(number)))

    loops = [looping(number) for number in range(WORKERS) for _ in range(LOOPS)]
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0, 0.15))
        number = dice.randrange(WORKERS)
        hand = hands[number]
        assert hand is not None
        hand.kill()
        await hand.gone.wait()
        hands[number] = None
        hands[number] = await staff.start(lease=LEASE)
    for one in loops:
        one.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    assert len(load.asked) > KILLS

    last = hands[0]
    assert last is not None
    await load.check(last, recorder, books, within=LEASE + 30)
    tail = await load.fresh(last, 100)
    assert [one and one["status"] for one in tail] == ["success"] * 100
