"""An owner that stands still past its lease: another takes its place, and its own word is late."""

import asyncio
import os

import pytest

from tests.house import until
from tests.once.books import Books
from tests.once.recorder import Recorder
from tests.once.staff import Staff

pytestmark = [pytest.mark.req("S2", "S3"), pytest.mark.timeout(600)]
ROUNDS = int(os.environ.get("TOOLGATE_ONCE_STALLS", "100"))
AT_ONCE = 10
HALF = AT_ONCE // 2


async def test_what_a_stalled_owner_says_afterwards_is_refused(
    staff: Staff, recorder: Recorder, books: Books
) -> None:
    owner, other = await staff.start(), await staff.start()
    for first in range(0, ROUNDS, AT_ONCE):
        keys = [f"s{number}" for number in range(first, first + AT_ONCE)]
        tools = {key: ("pay", "send")[number % 2] for number, key in enumerate(keys)}
        mine = [owner.call(tools[key], key, hold="after") for key in keys]
        await until(lambda keys=keys: owner.held.issuperset(keys))
        owner.stop()
        # They wait for the lease to end, then take over, or find that somebody has.
        for key in keys:
            other.go(key)
        taken = await asyncio.gather(
            *(
                other.call(tools[key], key, hold="after")
                for key in sorted(keys, key=tools.__getitem__)
            )
        )
        assert [one["status"] for one in taken] == ["unknown"] * HALF + ["success"] * HALF
        before = {row.of: row for row in await books.rows()}
        owner.go_on()
        for key in keys:
            owner.go(key)
        late = await asyncio.gather(*mine)
        assert {one["status"] for one in late} == {"unknown"}
        assert {one["code"] for one in late} == {"lease_lost"}
        after = {row.of: row for row in await books.rows()}
        assert after == before, "the late word changed nothing"
        assert {after[key].fence for key in keys} == {2}
        assert {recorder.counts(tools[key])[key] for key in keys} == {1}
