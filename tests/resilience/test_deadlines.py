"""Deadlines inside deadlines, tools that take no notice of them, and time that is over before."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from tests.house import ME, until
from toolgate import Extension, Output, tool
from toolgate import clock as the_clock
from toolgate.errors import ExecutionFailed, OutOfTime
from toolgate.executor.resilience import attended as attending
from toolgate.executor.resilience.deadline import depth, latest_ns, within
from toolgate.runtime import Runtime
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

SOON = 0.1
LATE = 0.2
TRIES = 3


def ends(journal: MemoryJournal) -> list[tuple[str, str, str]]:
    return [(entry.tool, str(entry.state), entry.error_code) for entry in journal.calls]


async def timed(house: Runtime, name: str) -> tuple[Output, float]:
    """The answer, and the shortest it took: a busy machine only adds to it."""
    took: list[float] = []
    for _ in range(TRIES):
        began = the_clock.monotonic_ns()
        output = await house.call(name, caller=ME)
        took.append((the_clock.monotonic_ns() - began) / 1e9)
    return output, min(took)  # pyright: ignore[reportPossiblyUnboundVariable]


def nested(houses: list[Runtime], seen: list[int]) -> list[Any]:
    """Three tools, each of which calls the next; the innermost waits for ever."""

    @tool(effect="pure", timeout=SOON)
    async def outer() -> Any:
        seen.append(latest_ns())
        return (await houses[0].call("middle", caller=ME)).to_machine()

    @tool(effect="pure", timeout=20)
    async def middle() -> Any:
        seen.append(latest_ns())
        return (await houses[0].call("inner", caller=ME)).to_machine()

    @tool(effect="pure", timeout=10)
    async def inner() -> None:
        seen.append(latest_ns())
        await asyncio.Event().wait()

    return [outer, middle, inner]


@pytest.mark.req("X4")
async def test_the_nearest_of_three_deadlines_holds_for_all_of_them() -> None:
    houses: list[Runtime] = []
    seen: list[int] = []
    journal = MemoryJournal()
    async with in_memory(*nested(houses, seen), journal=journal) as house:
        houses.append(house)
        output, took = await timed(house, "outer")
    assert output.error is not None
    assert output.error.code == "timed_out"
    assert len(set(seen)) == TRIES, "each inner call has what is left of the outer one's time"
    assert took < SOON + LATE
    assert sorted(ends(journal)) == [
        (name, "failed", "timed_out") for name in ("inner", "middle", "outer") for _ in range(TRIES)
    ]


@pytest.mark.req("X4")
async def test_an_inner_deadline_that_is_nearer_is_its_own() -> None:
    houses: list[Runtime] = []

    @tool(effect="pure", timeout=20)
    async def patient() -> Any:
        output = await houses[0].call("hasty", caller=ME)
        assert output.error is not None
        return output.error.code

    @tool(effect="pure", timeout=0.01)
    async def hasty() -> None:
        await asyncio.Event().wait()

    async with in_memory(patient, hasty) as house:
        houses.append(house)
        assert (await house.call("patient", caller=ME)).data == "timed_out"
    assert depth() == 0


@pytest.mark.req("X4")
@pytest.mark.parametrize("effect", ["pure", "irreversible"])
async def test_a_call_whose_time_is_over_is_never_begun(effect: Any) -> None:
    ran: list[str] = []
    journal = MemoryJournal()

    @tool(effect=effect)
    async def act() -> None:
        ran.append("act")

    async with in_memory(act, journal=journal) as house:
        with within(the_clock.monotonic_ns()), pytest.raises(OutOfTime) as refused:
            await house.call("act", caller=ME)
        assert refused.value.retryable
        assert ran == []
        assert {(state, code) for _tool, state, code in ends(journal)} == {
            ("failed", "out_of_time")
        }
        assert (await house.call("act", caller=ME)).ok, "outside of it there is time"


@pytest.mark.req("X4")
async def test_time_that_an_extension_used_up_is_not_there_for_the_tool() -> None:
    ran: list[str] = []
    journal = MemoryJournal()

    class Slow(Extension):
        priority = 450

        def before(self, call: Any) -> None:
            # Held up without giving the loop a chance, so that no timer can fire.
            while the_clock.monotonic_ns() < call.until_ns:
                pass

    @tool(effect="irreversible", timeout=0.02)
    async def act() -> None:
        ran.append("act")

    async with in_memory(act, journal=journal, extensions=[Slow()]) as house:
        with pytest.raises(OutOfTime):
            await house.call("act", caller=ME)
    assert ran == []
    assert ends(journal) == [("act", "failed", "out_of_time")]


@pytest.mark.req("X4")
@pytest.mark.parametrize("effect", ["pure", "irreversible"])
async def test_a_tool_that_swallows_its_cancellation_does_not_hold_its_caller(effect: Any) -> None:
    journal = MemoryJournal()
    steps: list[str] = []

    @tool(effect=effect, timeout=SOON)
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                steps.append("no")

    async with in_memory(stubborn, journal=journal) as house:
        output, took = await timed(house, "stubborn")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0, "the caller was never cancelled"
    state = "failed" if effect == "pure" else "unknown"
    assert output.status == ("error" if effect == "pure" else "unknown")
    assert steps, "it did swallow it"
    assert took < SOON + LATE
    assert ends(journal) == [("stubborn", state, "timed_out")] * TRIES


@pytest.mark.req("X4")
async def test_a_tool_that_swallows_everything_is_left_as_it_is(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(attending, "_stubborn", kept)
    stop: list[bool] = []

    @tool(effect="pure", timeout=0.02)
    async def deaf() -> None:
        while not stop:
            try:
                await asyncio.Event().wait()
            except BaseException:  # noqa: BLE001, S112  on purpose
                continue

    async with in_memory(deaf) as house:
        with caplog.at_level(logging.WARNING):
            output = await house.call("deaf", caller=ME)
        assert output.error is not None
        assert output.error.code == "timed_out"
        assert "took no notice of being stopped" in caplog.text
    stop.append(True)
    [one] = kept
    one.close()


@pytest.mark.req("X4")
async def test_a_stubborn_tool_inside_another_ends_with_both_on_record() -> None:
    houses: list[Runtime] = []
    journal = MemoryJournal()

    @tool(effect="irreversible", timeout=SOON)
    async def outer() -> None:
        await houses[0].call("inner", caller=ME)

    @tool(effect="irreversible", timeout=20)
    async def inner() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async with in_memory(outer, inner, journal=journal) as house:
        houses.append(house)
        assert (await house.call("outer", caller=ME)).status == "unknown"
    assert sorted(ends(journal)) == [
        ("inner", "unknown", "timed_out"),
        ("outer", "unknown", "timed_out"),
    ]


@pytest.mark.req("X4")
async def test_a_cancelled_caller_is_not_held_by_a_stubborn_tool() -> None:
    began = asyncio.Event()

    @tool(effect="pure")
    async def stubborn() -> None:
        began.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async with in_memory(stubborn) as house:
        calling = asyncio.create_task(house.call("stubborn", caller=ME))
        await began.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_timeouts_of_a_tools_own_are_its_own_however_many() -> None:
    @tool(effect="pure", timeout=20)
    async def looks() -> int:
        missed = 0
        for _ in range(3):
            try:
                # Longer than a tool that was stopped is given.
                async with asyncio.timeout(0.06):
                    await asyncio.Event().wait()
            except TimeoutError:
                missed += 1
        return missed

    async with in_memory(looks) as house:
        assert (await house.call("looks", caller=ME)).data == 3


@pytest.mark.req("X4")
async def test_a_thread_that_goes_on_is_unknown_and_its_late_end_changes_nothing() -> None:
    journal = MemoryJournal()
    effects: list[str] = []
    go, over = threading.Event(), threading.Event()

    @tool(effect="irreversible", timeout=SOON)
    def blocks() -> None:
        go.wait(20)
        effects.append("late")
        over.set()

    async with in_memory(blocks, journal=journal) as house:
        output = await house.call("blocks", caller=ME)
        assert output.status == "unknown"
        assert effects == []
        go.set()
        await until(over.is_set)
        await asyncio.sleep(0)
    assert effects == ["late"]
    assert ends(journal) == [("blocks", "unknown", "timed_out")]


@pytest.mark.req("X4")
async def test_durations_do_not_follow_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = MemoryJournal()
    jumps = iter([0, 3_600, -3_600, 86_400, 0, -86_400, 0, 3_600, 0, 0, 0, 0])
    real = the_clock.unix_ns

    @tool(effect="irreversible")
    async def act() -> None:
        await asyncio.sleep(0)

    async with in_memory(act, journal=journal) as house:
        monkeypatch.setattr(the_clock, "unix_ns", lambda: real() + next(jumps, 7_200) * 10**9)
        output = await house.call("act", caller=ME)
    assert 0 <= output.duration_ms < 10_000
    assert 0 <= journal.calls[0].duration_ns < 10 * 10**9


@pytest.mark.req("X4")
async def test_what_a_nested_refusal_does_to_its_caller_is_an_error_of_the_tool() -> None:
    houses: list[Runtime] = []

    @tool(effect="irreversible")
    async def outer() -> None:
        with within(the_clock.monotonic_ns()):
            await houses[0].call("inner", caller=ME)

    @tool(effect="pure")
    async def inner() -> None: ...

    async with in_memory(outer, inner) as house:
        houses.append(house)
        output = await house.call("outer", caller=ME)
    assert output.error is not None
    assert output.error.code == ExecutionFailed.code
    assert output.error.details == {"outcome": "unknown"}, "the outer one had begun"
