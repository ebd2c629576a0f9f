"""Killed at each point by name: what is there afterwards, and what a second try makes of it."""

import asyncio
import importlib
import itertools
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

import toolgate
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
EARLY = ("CP1", "CP2", "CP3")
BEGUN = ("CP4", "CP5", "CP6", "CP7")
DONE = ("CP9",)
# Points with tests of their own.
UNDO = "once.test_crash_steps:test_killed_in_an_undo_the_next_goes_on_in_order_and_undoes_each_once"
QUEUED = "queue.test_broken:test_killed_while_it_has_a_call_another_brings_it_to_its_end_once"
FETCHED = "queue.test_fetched:test_killed_with_what_it_fetched_another_worker_runs_it_once_in_time"
REFUSED = "queue.test_refused:test_killed_around_giving_it_back_it_is_never_done_twice"
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "CP8": (
        "once.test_crash_steps:test_killed_before_events_are_sent_the_next_sends_each_of_them",
    ),
    "CP10": (UNDO,),
    "CP11": (UNDO,),
    "CP12": (
        "once.test_crash_steps:test_killed_after_an_approval_it_is_still_good_for_one_call",
        "people.test_crash:test_an_approval_whose_process_is_killed_is_there_once_and_still_expires",
    ),
    "CP13": (
        "once.test_crash_steps:test_killed_in_a_reload_the_next_start_has_the_new_definitions_whole",
    ),
    "CP15": ("queue.test_broken:test_killed_once_it_is_queued_a_call_is_run_all_the_same",),
    "CP16": (QUEUED,),
    "CP17": (QUEUED,),
    "CP18": (QUEUED,),
    "CP19": (REFUSED,),
    "CP20": (REFUSED,),
    "CP21": (FETCHED,),
    "CP22": (FETCHED,),
    "CP14": (
        "once.test_crash_steps:test_killed_in_a_migration_the_next_start_finds_nothing_or_all",
        "store.test_migrate:test_a_process_killed_inside_a_migration_leaves_nothing_behind",
    ),
}


def test_every_crash_point_has_a_test() -> None:
    for where in itertools.chain.from_iterable(ELSEWHERE.values()):
        module, _, name = where.partition(":")
        assert callable(getattr(importlib.import_module(f"tests.{module}"), name))
    assert {*EARLY, *BEGUN, *DONE, *ELSEWHERE} == set(POINTS)


def test_every_crash_point_is_passed_somewhere_and_no_other_one_is() -> None:
    """Where nobody arms it, a point of another name would never be tested."""
    house = Path(toolgate.__file__).parent
    passed = "\n".join(
        line
        for file in house.rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if "crash_here(" in line
    )
    assert set(re.findall(r"\bCP\d+", passed)) == set(POINTS)


class Victim:
    """A worker that dies at its point, and the calls that it was given one after another."""

    def __init__(self, number: int, point: str) -> None:
        self.tool = TOOLS[number % len(TOOLS)]
        self.times = random.randint(1, 3)  # noqa: S311  any will do
        self.at = f"{point}:{self.times}"
        self.keys = [f"{self.tool}-{number}-{one}" for one in range(self.times)]
        self.answers: list[Any] = []
        self.left = ""

    async def die(self, staff: Staff) -> None:
        hand = await staff.start(self.at, lease=60.0)
        for key in self.keys:
            self.answers.append(await hand.call(self.tool, key))
            if self.answers[-1] is None:
                # Perhaps before the last one: a call that is decided anew passes a point twice.
                self.keys = self.keys[: len(self.answers)]
                break
        async with asyncio.timeout(20):
            await hand.gone.wait()


def expected(point: str, victim: Victim) -> tuple[str, int]:
    """What a second try is answered, and how often the effect has happened by then."""
    if victim.left != "started":
        return "success", 1
    happened = point in {"CP6", "CP7"}
    if victim.tool == "pay":
        return "unknown", int(happened)
    return "success", 2 if victim.tool == "put" and happened else 1


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
            assert (answer["status"], counts[key]) == expected(point, victim), (key, answer)
            if victim.left != "started":
                assert answer["cached"] is (victim.left == "succeeded")
    await check_books(recorder, books)


async def check_left(point: str, victim: Victim, recorder: Recorder, books: Books) -> None:
    """What the dead worker left behind."""
    states = {row.of: row.state for row in await books.rows()}
    last = victim.keys[-1]
    victim.left = states.get(last, "")
    # A claim can be killed before or after its one transaction.
    if point == "CP4":
        assert victim.left in {"", "started"}
    else:
        assert victim.left == (
            "" if point in EARLY else "succeeded" if point in DONE else "started"
        )
    assert recorder.counts(victim.tool)[last] == (point in {"CP6", "CP7", *DONE})


async def check_books(recorder: Recorder, books: Books) -> None:
    """The ledger and the audit say what the recorder says; nothing is left open."""
    happened = {line["call"] for line in recorder.lines()}
    rows = await books.rows()
    for row in rows:
        assert row.state in {"succeeded", "unknown", "failed"}, row
        if row.state != "unknown":
            assert (row.call_id in happened) is (row.state == "succeeded"), row
    ended = [one for one in await books.audited() if one["change"] == ENDED]
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
