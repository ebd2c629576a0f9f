"""A call ends in time, or with its caller, as its effect says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.executor.tools import endless, held
from tests.house import ME, open_gate, states
from toolgate import Toolgate, tool

SOON = 0.05
# Long enough for a record to be on a busy disk before the tool begins.
WRITTEN = 0.5


@pytest.mark.req("X4")
@pytest.mark.parametrize(
    ("effect", "status", "state", "says"),
    [
        ("pure", "error", "failed", "You may try again"),
        ("idempotent", "unknown", "unknown", "You may try again"),
        ("irreversible", "unknown", "unknown", "It may have taken effect"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_call_that_takes_too_long_ends_as_its_effect_says(
    gate: Toolgate,
    effect: Any,
    status: str,
    state: str,
    says: str,
    is_async: bool,  # noqa: FBT001
) -> None:
    with held() as event:

        def blocks() -> None:
            event.wait()

        marked = tool(effect=effect, timeout=WRITTEN, name="slow")
        gate.add(marked(endless) if is_async else marked(blocks))
        output = await gate.call("slow", caller=ME)
    assert output.error is not None
    assert (output.status, output.error.code) == (status, "timed_out")
    assert says in output.error.message
    assert "stopped" not in output.error.message, "a thread goes on to its end"
    assert output.error.retryable is (effect != "irreversible")
    assert await states(gate) == [("slow", state, "timed_out")]


@pytest.mark.req("X4")
async def test_a_tool_without_a_timeout_has_that_of_the_settings(tmp_path: Path) -> None:
    async with open_gate(tmp_path, default_timeout=SOON) as gate:
        gate.add(tool(effect="pure")(endless))
        output = await gate.call("endless", caller=ME)
    assert output.error is not None
    assert f"longer than {SOON:g} s" in output.error.message


@pytest.mark.req("X4")
async def test_a_tool_that_was_stopped_has_cleaned_up_when_the_answer_comes(
    gate: Toolgate,
) -> None:
    steps: list[str] = []

    @tool(effect="pure", timeout=SOON)
    async def tidy() -> None:
        try:
            await endless()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    gate.add(tidy)
    assert (await gate.call("tidy", caller=ME)).error is not None
    assert steps == ["cleaned up"]


async def test_a_tool_that_answers_although_it_was_stopped_is_believed(gate: Toolgate) -> None:
    @tool(effect="pure", timeout=SOON)
    async def stubborn() -> str:
        try:
            await endless()
        except asyncio.CancelledError:
            return "what I had"
        return ""

    gate.add(stubborn)
    assert (await gate.call("stubborn", caller=ME)).data == "what I had"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "the caller was never cancelled"


async def test_a_timeout_inside_the_tool_is_the_tools_own_failure(gate: Toolgate) -> None:
    @tool(effect="pure", timeout=20)
    async def impatient() -> None:
        async with asyncio.timeout(SOON):
            await endless()

    @tool(effect="pure", timeout=20)
    async def patient() -> str:
        try:
            async with asyncio.timeout(SOON):
                await endless()
        except TimeoutError:
            return "went on"
        return ""

    gate.add(impatient, patient)
    output = await gate.call("impatient", caller=ME)
    assert output.error is not None
    assert (output.error.code, "TimeoutError" in output.error.message) == (
        "execution_failed",
        True,
    )
    assert (await gate.call("patient", caller=ME)).data == "went on"


@pytest.mark.req("X4")
async def test_of_nested_deadlines_the_nearest_one_ends_the_call(gate: Toolgate) -> None:
    gate.add(tool(effect="pure", timeout=20)(endless))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SOON):
            await gate.call("endless", caller=ME)
    assert await states(gate) == [("endless", "failed", "cancelled")]


@pytest.mark.req("X4")
async def test_a_cancelled_caller_is_on_record_and_stays_cancelled(gate: Toolgate) -> None:
    began = asyncio.Event()

    @tool(effect="irreversible", name="effect")
    async def effect() -> None:
        began.set()
        await endless()

    gate.add(effect)
    calling = asyncio.create_task(gate.call("effect", caller=ME))
    await began.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await states(gate) == [("effect", "unknown", "cancelled")]


@pytest.mark.req("X4")
async def test_a_call_cancelled_before_it_could_start_runs_nothing(gate: Toolgate) -> None:
    ran: list[str] = []

    @tool(effect="irreversible", name="effect")
    async def effect() -> None:
        ran.append("effect")

    gate.add(effect)
    for turns in range(4):
        calling = asyncio.create_task(gate.call("effect", caller=ME))
        for _ in range(turns):
            await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    assert ran == []
    # Whichever reached the record before the cancellation, none is left open or in doubt.
    assert {(state, code) for _tool, state, code in await states(gate)} <= {("failed", "cancelled")}


async def test_what_a_tool_waited_for_being_cancelled_is_not_the_callers_cancellation(
    gate: Toolgate,
) -> None:
    @tool(effect="pure")
    async def waits() -> None:
        other = asyncio.create_task(endless())
        other.cancel()
        await other

    @tool(effect="pure")
    def raises() -> None:
        raise asyncio.CancelledError

    gate.add(waits, raises)
    for name in ("waits", "raises"):
        output = await gate.call(name, caller=ME)
        assert output.error is not None
        assert (output.error.code, "CancelledError" in output.error.message) == (
            "execution_failed",
            True,
        )


async def test_a_caller_in_a_task_group_is_cancelled_with_it(gate: Toolgate) -> None:
    gate.add(tool(effect="pure")(endless))
    began = asyncio.Event()

    async def call() -> None:
        began.set()
        await gate.call("endless", caller=ME)

    async def fail() -> None:
        await began.wait()
        await asyncio.sleep(0)
        raise ValueError("the other one")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(call())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as raised:
        await both()
    assert raised.group_contains(ValueError, match="the other one")
    assert await states(gate) == [("endless", "failed", "cancelled")]
