"""So many at a time, and nobody in the way of others."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.house import ME, until
from tests.resilience.rooms import Room, calling, codes, settled
from toolgate import Caller, tool
from toolgate.errors import Overloaded
from toolgate.executor.resilience.bulkhead import Bulkhead
from toolgate.providers.threads import NotBegun, Threads
from toolgate.runtime import Runtime
from toolgate.testing.house import in_memory


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
