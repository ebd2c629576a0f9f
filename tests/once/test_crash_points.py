"""Killed at each point by name: what is there afterwards, and what a second try makes of it."""

import asyncio
import importlib
import os
import random
from typing import Any

import pytest

from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Hand, Staff
from toolgate.crash import POINTS
from toolgate.tenancy.audit import ENDED

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(300)]
KILLS = int(os.environ.get("TOOLGATE_ONCE_KILLS", "20"))
TOOLS = ("pay", "send", "put", "book")
AT_ONCE = 5
# Before the intent is on record nothing can have happened.
EARLY = ("CP1", "CP2", "CP4")
BEGUN = ("CP5", "CP6", "CP7")
DONE = ("CP9",)
# Points with tests of their own.
ELSEWHERE: dict[str, str] = {
    "CP14": "tests.store.test_migrate:test_a_process_killed_inside_a_migration_leaves_nothing_behind",
}


def test_every_crash_point_has_a_test() -> None:
    for point, where in ELSEWHERE.items():
        module, _, name = where.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), point
    assert {*EARLY, *BEGUN, *DONE, *ELSEWHERE} == set(POINTS)


class Victim:
    """A worker that dies at its point, and the calls that it was given one after another."""

    def __init__(self, number: int, point: str) -> None:
        self.tool = TOOLS[number % len(TOOLS)]
        self.times = random.randint(1, 3)  # noqa: S311  any will do
        self.at = f"{point}:{self.times}"
        self.keys = [f"{self.tool}-{number}-{one}" for one in range(self.times)]
        self.answers: list[Any] = []

    async def die(self, staff: Staff) -> None:
        hand = await staff.start(self.at, lease=60.0)
        for key in self.keys:
            self.answers.append(await hand.call(self.tool, key))
        async with asyncio.timeout(20):
            await hand.gone.wait()


def expected(point: str, tool: str) -> tuple[str, set[int]]:
    """What a second try is answered, and how often the effect may have happened by then."""
    if point in EARLY or point in DONE:
        return "success", {1}
    if tool == "pay":
        return "unknown", {0} if point == "CP5" else {1}
    return "success", {2} if tool == "put" and point != "CP5" else {1}


@pytest.mark.parametrize("point", [*EARLY, *BEGUN, *DONE])
async def test_killed_at_a_point_nothing_is_lost_and_nothing_is_done_twice(
    point: str, staff: Staff, recorder: Recorder, books: Books
) -> None:
    victims = [Victim(number, point) for number in range(KILLS)]
    for first in range(0, KILLS, AT_ONCE):
        await asyncio.gather(*(one.die(staff) for one in victims[first : first + AT_ONCE]))
    for victim in victims:
        *acknowledged, last = victim.answers
        assert last is None, "it died with this one"
        assert all(one["status"] == "success" for one in acknowledged), acknowledged
        await check_left(point, victim, recorder, books)
    await books.age()

    fresh = await staff.start()
    for victim in victims:
        again = await asyncio.gather(*(fresh.call(victim.tool, key) for key in victim.keys))
        numbers, counts = recorder.numbers(victim.tool), recorder.counts(victim.tool)
        for key, first_time, answer in zip(victim.keys, victim.answers, again, strict=True):
            if first_time is not None:
                assert (answer["status"], answer["cached"]) == ("success", True)
                assert answer["data"] == first_time["data"] == {"number": numbers[key]}
                assert counts[key] == 1
                continue
            status, times = expected(point, victim.tool)
            assert answer["status"] == status, answer
            assert counts[key] in times, (key, counts[key], answer)
            if point in DONE:
                assert answer["cached"]
            elif status == "success" and point in EARLY:
                assert not answer["cached"]
    await check_books(recorder, books)


async def check_left(point: str, victim: Victim, recorder: Recorder, books: Books) -> None:
    """What the dead worker left behind."""
    rows = {row.of: row for row in await books.rows()}
    last = victim.keys[-1]
    if point in EARLY:
        assert last not in rows
    else:
        assert rows[last].state == ("succeeded" if point in DONE else "started")
    happened = 0 if point in EARLY or point == "CP5" else 1
    assert recorder.counts(victim.tool)[last] == happened


async def check_books(recorder: Recorder, books: Books) -> None:
    """The ledger and the audit say what the recorder says; nothing is left open."""
    counts = {tool: recorder.counts(tool) for tool in TOOLS}
    for row in await books.rows():
        assert row.state in {"succeeded", "unknown"}, row
        if row.state == "succeeded":
            assert counts[row.tool][row.of] >= 1, row
    ended = [one for one in await books.audited() if one["change"] == ENDED]
    rows = [row for row in await books.rows() if row.state in {"succeeded", "unknown"}]
    assert sorted(one["details"]["call_id"] for one in ended) == sorted(row.call_id for row in rows)


async def test_without_the_claim_a_second_try_would_do_it_twice(
    staff: Staff, recorder: Recorder
) -> None:
    """The guard is the key: under another one, the same call is another piece of business."""
    hand: Hand = await staff.start("CP9")
    assert await hand.call("pay", "a") is None
    fresh = await staff.start()
    assert (await fresh.call("pay", "a"))["cached"]
    assert recorder.counts("pay")["a"] == 1
    assert not (await fresh.call("pay", "a", once="another"))["cached"]
    assert recorder.counts("pay")["a"] == 2
