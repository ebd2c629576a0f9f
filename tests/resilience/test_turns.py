"""Who waits for a place: a fair turn for each tenant, and no longer than there is time."""

import asyncio
from collections import Counter

import pytest

from tests.house import ME
from tests.resilience.rooms import Room, calling, codes, settled
from toolgate import Caller, tool
from toolgate.errors import OutOfTime
from toolgate.executor.resilience.bulkhead import Bulkhead
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal


@pytest.mark.req("X4")
async def test_tenants_take_turns_however_many_calls_each_has() -> None:
    room = Room()
    async with in_memory(room.tool, extensions=[Bulkhead(concurrency=2, waiting=1_000)]) as house:
        loud = [Caller(tenant="loud", agent="a")] * 20
        quiet = [Caller(tenant=name, agent="a") for name in ("two", "three")]
        tasks = [*calling(house, "stay", 1, loud[0])]
        await settled()
        for caller in [*loud, *quiet, *quiet]:
            tasks += calling(house, "stay", 1, caller)
        await settled()
        room.go.set()
        await asyncio.gather(*tasks)
    assert room.order[:8] == ["loud", "loud", "two", "three", "loud", "two", "three", "loud"]
    assert Counter(room.order) == {"loud": 21, "two": 2, "three": 2}


@pytest.mark.req("X4")
async def test_a_full_queue_makes_room_for_a_tenant_that_has_less_of_it() -> None:
    """Who floods is refused by its own flood, and keeps nobody else from waiting."""
    room, other = Room("stay"), Room("other")
    narrow = Bulkhead(concurrency=2, waiting=8)
    loud, quiet = Caller(tenant="loud", agent="a"), Caller(tenant="quiet", agent="a")
    async with in_memory(room.tool, other.tool, extensions=[narrow]) as house:
        flood = calling(house, "stay", 9, loud)
        await settled()
        assert codes([task.exception() for task in flood if task.done()]) == {"overloaded": 4}
        few = calling(house, "stay", 3, quiet)
        await settled()
        assert codes([task.exception() for task in few if task.done()]) == {"overloaded": 1}
        # The last of the loud have gone; the first keep their turn.
        assert [task.done() for task in flood] == [False] * 3 + [True] * 6
        flood += calling(house, "stay", 2, loud)
        flood += calling(house, "other", 9, loud)
        await settled()
        # All places of the queue are taken, those of the tool are not.
        third = calling(house, "other", 1, Caller(tenant="third", agent="a"))
        await settled()
        assert not third[0].done()
        room.go.set()
        other.go.set()
        found = codes(await asyncio.gather(*few, *third, return_exceptions=True))
        await asyncio.gather(*flood, return_exceptions=True)
    assert found == {"done": 3, "overloaded": 1}


@pytest.mark.req("X4")
async def test_a_queue_without_places_refuses_everybody() -> None:
    room = Room()
    async with in_memory(room.tool, extensions=[Bulkhead(concurrency=2, waiting=0)]) as house:
        tasks = calling(house, "stay", 2)
        await settled()
        room.go.set()
        assert codes(await asyncio.gather(*tasks, return_exceptions=True)) == {
            "done": 1,
            "overloaded": 1,
        }


@pytest.mark.req("X4")
async def test_how_long_a_tenant_would_wait_is_told_by_its_own_turn() -> None:
    """Calls of others that come behind it are not before it."""

    @tool(effect="pure", timeout=2.0)
    async def slow() -> str:
        await asyncio.sleep(0.1)
        return "done"

    loud, quiet = Caller(tenant="loud", agent="a"), Caller(tenant="quiet", agent="a")
    async with in_memory(slow, extensions=[Bulkhead(concurrency=2, waiting=1_000)]) as house:
        flood = calling(house, "slow", 3, loud)
        await asyncio.gather(*flood[:2])
        # Two of them have run behind a wait: how long it takes is known while more wait.
        flood += calling(house, "slow", 12, loud)
        await settled()
        assert (await house.call("slow", caller=quiet)).ok
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)


@pytest.mark.req("X4")
async def test_a_wait_ends_with_the_deadline_and_nothing_has_run() -> None:
    room, journal = Room("stay", effect="irreversible", timeout=20), MemoryJournal()
    ran: list[str] = []

    @tool(effect="irreversible", timeout=0.05)
    async def hasty() -> None:
        ran.append("hasty")

    narrow = Bulkhead(concurrency=1, waiting=10)
    async with in_memory(room.tool, hasty, extensions=[narrow], journal=journal) as house:
        first = calling(house, "stay")
        await settled()
        with pytest.raises(OutOfTime):
            await house.call("hasty", caller=ME)
        room.go.set()
        await asyncio.gather(*first)
        assert ran == []
        assert (await house.call("hasty", caller=ME)).ok, "its place in the queue is free"
    states = [(entry.tool, str(entry.state), entry.error_code) for entry in journal.calls]
    assert ("hasty", "failed", "out_of_time") in states, "known not to have happened"


@pytest.mark.req("X4")
async def test_a_caller_that_goes_away_gives_its_turn_to_the_next() -> None:
    room = Room()
    async with in_memory(room.tool, extensions=[Bulkhead(concurrency=2, waiting=10)]) as house:
        tasks = calling(house, "stay", 5)
        await settled()
        for gone in tasks[1:3]:
            gone.cancel()
        await settled()
        # Cancelled in the moment in which it is let in.
        tasks[0].cancel()
        await asyncio.sleep(0)
        tasks[3].cancel()
        await settled()
        room.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in found] == [True] * 4 + [False]
        assert (await house.call("stay", caller=ME)).ok
        assert room.now == 0


@pytest.mark.req("X4")
async def test_what_could_not_be_over_in_time_is_not_begun() -> None:
    """Under too much load, places go to calls that can still be answered."""
    ran = wasted = 0

    @tool(effect="pure", timeout=0.4)
    async def work() -> None:
        nonlocal ran, wasted
        ran += 1
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            wasted += 1
            raise

    async with in_memory(work, extensions=[Bulkhead(concurrency=2, waiting=1_000)]) as house:
        found = await asyncio.gather(
            *(call for _ in range(5) for call in calling(house, "work", 40)),
            return_exceptions=True,
        )
        assert (await house.call("work", caller=ME)).ok, "it recovers"
    assert ran >= 3
    assert wasted <= ran * 0.5
    assert len(found) == 200


@pytest.mark.req("X4")
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_tenant_that_holds_all_places_does_not_stop_one_that_runs_little(
    monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    if not is_kept:
        monkeypatch.setattr("toolgate.executor.resilience.bulkhead.KEPT", 1_000)
    room, other = Room("stay"), Room("other")
    few = Caller(tenant="umbrella", agent="billing")
    wide = Bulkhead(concurrency=16, waiting=100)
    async with in_memory(room.tool, other.tool, extensions=[wide]) as house:
        tasks = calling(house, "stay", 20) + calling(house, "other", 20)
        await settled()
        assert (room.now, other.now) == (8, 8)
        tasks += (asked := calling(house, "stay", 3, caller=few))
        await settled()
        # One of its own two: the other waits in line, and so does all of who has many.
        assert room.order.count("umbrella") == (1 if is_kept else 0)
        assert room.now == (9 if is_kept else 8)
        # Its place is for its next, though all others are still taken.
        asked[0].cancel()
        await settled()
        assert room.order.count("umbrella") == (2 if is_kept else 0)
        tasks.remove(asked.pop(0))
        room.go.set()
        other.go.set()
        await asyncio.gather(*tasks)
        assert all(task.result().ok for task in asked)
    assert wide.standing()["python", "running"] == 0
