"""An owner that stands still past its lease: another takes its place, and its own word is late."""

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest

from tests.house import until
from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Hand, Staff

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(600)]
ROUNDS = int(os.environ.get("TOOLGATE_ONCE_STALLS", "100"))
AT_ONCE = 10
HALF = AT_ONCE // 2
FILE = "sqlite:///"


def stopped(owners: Sequence[Hand], url: str) -> None:
    """All of them, and none with the lock of the file: whoever has it holds up every other one."""
    while True:
        for owner in owners:
            owner.stop()
        while not all(owner.is_stopped for owner in owners):
            pass
        if not url.startswith(FILE) or is_free(url.removeprefix(FILE)):
            return
        for owner in owners:
            owner.go_on()


def is_free(path: str) -> bool:
    with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


async def test_what_a_stalled_owner_says_afterwards_is_refused(
    staff: Staff, recorder: Recorder, books: Books
) -> None:
    # Each round is one owner that is stopped and goes on; so many of them stand still together.
    owners = [await staff.start() for _ in range(AT_ONCE)]
    other = await staff.start()
    for first in range(0, ROUNDS, AT_ONCE):
        keys = [f"s{number}" for number in range(first, first + AT_ONCE)]
        tools = {key: ("pay", "send")[number % 2] for number, key in enumerate(keys)}
        whose = dict(zip(keys, owners, strict=True))
        mine = [owner.call(tools[key], key, hold="after") for key, owner in whose.items()]
        await until(
            lambda whose=whose, mine=mine: (
                all(key in one.held for key, one in whose.items())
                or any(one.done() for one in mine)
            )
        )
        assert not any(one.done() for one in mine), [one.result() for one in mine if one.done()]
        stopped(owners, staff.url)
        # They wait for the lease to end, then take over, or find that somebody has.
        for key in keys:
            other.go(key)
        taken = await asyncio.gather(
            *(
                other.call(tools[key], key, hold="after")
                for key in sorted(keys, key=tools.__getitem__)
            )
        )
        assert [one["status"] for one in taken] == ["unknown"] * HALF + ["success"] * HALF, taken
        before = {row.of: row for row in await books.rows()}
        for key, owner in whose.items():
            owner.go_on()
            owner.go(key)
        late = await asyncio.gather(*mine)
        assert {one["status"] for one in late} == {"unknown"}
        assert {one["code"] for one in late} == {"lease_lost"}
        after = {row.of: row for row in await books.rows()}
        assert after == before, "the late word changed nothing"
        # Another owner may have taken one over before they were all stopped.
        assert min(after[key].fence for key in keys) >= 2
        assert {recorder.counts(tools[key])[key] for key in keys} == {1}
