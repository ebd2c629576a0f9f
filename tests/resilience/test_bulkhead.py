"""So many at a time, a fair turn for each tenant, and nobody in the way of others."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.house import ME, until
from toolgate import Call, Caller, tool
from toolgate.errors import OutOfTime, Overloaded, ToolgateError
from toolgate.executor.resilience.bulkhead import Bulkhead
from toolgate.providers.threads import NotBegun, Threads
from toolgate.runtime import Runtime
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal


class Room:
    """A tool that stays until it is let go; what ran at a time, and in which order."""

    def __init__(self, name: str = "stay", **fields: Any) -> None:
        self.go = asyncio.Event()
        self.now = self.most = 0
        self.order: list[str] = []

        given: Any = {"name": name, "effect": "pure"} | fields

        @tool(**given)
        async def stay(call: Call) -> str:
            self.order.append(call.caller.tenant)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await self.go.wait()
            finally:
                self.now -= 1
            return "done"

        self.tool: Callable[..., Any] = stay


async def settled() -> None:
    """Give everything that can go on the time to."""
    for _ in range(20):
        await asyncio.sleep(0)


def calling(house: Runtime, name: str, times: int = 1, caller: Caller = ME) -> list[Any]:
    return [asyncio.create_task(house.call(name, caller=caller)) for _ in range(times)]


def codes(found: list[Any]) -> Counter[str]:
    return Counter(one.code if isinstance(one, ToolgateError) else "done" for one in found)


@pytest.mark.req("X4")
async def test_no_more_run_than_may_the_next_wait_and_the_rest_hear_at_once() -> None:
    room, other = Room("stay"), Room("other")
    narrow = Bulkhead(concurrency=4, waiting=6)
    async with in_memory(room.tool, other.tool, extensions=[narrow]) as house:
        tasks = calling(house, "stay", 20)
        await settled()
        assert room.now == 2, "one tool has half of the places"
        done = [task for task in tasks if task.done()]
        assert codes([task.exception() for task in done]) == {"overloaded": 15}, "and of the queue"
        tasks += (more := calling(house, "other", 20))
        await settled()
        assert (room.now, other.now) == (2, 2)
        assert sum(task.done() for task in more) == 15
        room.go.set()
        other.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
    assert codes(found) == {"done": 10, "overloaded": 30}
    assert (room.most, other.most) == (2, 2)


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
async def test_one_tool_that_is_stuck_leaves_the_others_alone() -> None:
    stuck = Room("stuck")

    @tool(effect="pure")
    async def quick() -> str:
        await asyncio.sleep(0)
        return "done"

    async with in_memory(stuck.tool, quick) as house:
        tasks = calling(house, "stuck", 1_000)
        await settled()
        assert stuck.now == 32
        assert codes([task.exception() for task in tasks if task.done()]) == {"overloaded": 468}
        for _ in range(100):
            assert (await house.call("quick", caller=ME)).ok
        stuck.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
    assert codes(found) == {"done": 532, "overloaded": 468}


@pytest.mark.req("X4")
async def test_threads_that_are_stuck_leave_other_tools_theirs() -> None:
    go = threading.Event()

    @tool(effect="pure", timeout=0.5)
    def stuck() -> None:
        go.wait(30)

    @tool(effect="pure")
    def quick() -> str:
        return threading.current_thread().name

    async with in_memory(stuck, quick) as house:
        try:
            few = [Caller(tenant=name, agent="billing") for name in ("umbrella", "initech")]
            tasks = calling(house, "stuck", 32)
            tasks += [task for one in few for task in calling(house, "stuck", 4, caller=one)]
            first = await asyncio.gather(*tasks)
            assert {output.error.code for output in first} == {"timed_out"}
            # Its callers have gone, its threads have not: what it has of them stays taken.
            with pytest.raises(Overloaded, match="have never ended"):
                await house.call("stuck", caller=Caller(tenant="other", agent="a"))
            for _ in range(20):
                assert (await house.call("quick", caller=ME)).ok
        finally:
            go.set()

        async def is_free() -> bool:
            try:
                return (await house.call("stuck", caller=Caller(tenant="free", agent="a"))).ok
            except Overloaded:
                return False

        while not await is_free():  # noqa: ASYNC110  only a thread's end can be looked for
            await asyncio.sleep(0.01)


@pytest.mark.req("X4")
async def test_a_thread_counts_as_taken_until_its_work_is_really_over() -> None:
    threads = Threads(most=3, each=2)
    go, begun = threading.Event(), threading.Semaphore(0)

    def stuck() -> None:
        begun.release()
        go.wait()

    try:
        tasks = [asyncio.create_task(threads.run(stuck, of="stuck")) for _ in range(2)]
        for _ in tasks:
            await until(lambda: begun.acquire(blocking=False))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(NotBegun):
            await threads.run(lambda: None, of="stuck")
        assert await threads.run(lambda: "free", of="other") == "free"
    finally:
        go.set()
        threads.close()


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
async def test_a_call_inside_another_never_waits_for_it() -> None:
    houses: list[Runtime] = []

    @tool(effect="pure", timeout=5)
    async def deep(left: int) -> int:
        await asyncio.sleep(0)
        if not left:
            return 0
        output = await houses[0].call("deep", {"left": left - 1}, caller=ME)
        return 1 + output.data

    async with in_memory(deep, extensions=[Bulkhead(concurrency=2, waiting=10)]) as house:
        houses.append(house)
        assert (await house.call("deep", {"left": 5}, caller=ME)).data == 5


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


@settings(max_examples=40)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["call", "call", "end", "cancel"]), st.integers(0, 2), st.integers(0, 9)
        ),
        max_size=40,
    )
)
def test_whatever_comes_and_goes_no_bound_is_passed_and_no_place_is_lost(
    steps: list[tuple[str, int, int]],
) -> None:
    asyncio.run(_come_and_go(steps))


async def _come_and_go(steps: list[tuple[str, int, int]]) -> None:
    running: list[tuple[int, asyncio.Event]] = []

    @tool(effect="pure", name="stay")
    async def stay(number: int) -> None:
        event = asyncio.Event()
        running.append((number, event))
        try:
            await event.wait()
        finally:
            running.remove((number, event))

    narrow = Bulkhead(concurrency=4, waiting=6)
    async with in_memory(extensions=[narrow]) as house:
        for name in ("a", "b", "c"):
            house.add(stay, name=name)
        tasks: list[asyncio.Task[Any]] = []
        for kind, tool_number, which in steps:
            if kind == "call":
                caller = Caller(tenant=f"t{which % 3}", agent="a")
                call = house.call("abc"[tool_number], {"number": tool_number}, caller=caller)
                tasks.append(asyncio.create_task(call))
            elif kind == "end" and running:
                running[which % len(running)][1].set()
            elif kind == "cancel" and tasks:
                tasks[which % len(tasks)].cancel()
            await settled()
            assert len(running) <= 4
            assert max(Counter(number for number, _ in running).values(), default=0) <= 2
        while running:
            running[0][1].set()
            await settled()
        await asyncio.gather(*tasks, return_exceptions=True)
        [lane] = narrow._lanes.values() or [None]  # pyright: ignore[reportPrivateUsage]
        if lane is not None:
            assert (lane.running, lane.busy, lane._all_queued) == (0, {}, 0)  # pyright: ignore[reportPrivateUsage]
            assert (lane._queues, lane._queued) == ({}, {})  # pyright: ignore[reportPrivateUsage]


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
