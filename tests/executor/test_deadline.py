"""A call ends in time, and stepping it by hand changes nothing that a tool could notice."""

import asyncio
import contextvars
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.house import ME, journal_rows, open_gate, states
from toolgate import Call, Toolgate, tool
from toolgate.executor.resilience.deadline import _rest  # pyright: ignore[reportPrivateUsage]
from toolgate.providers.threads import NotBegun, Threads

SOON = 0.05
place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


@contextmanager
def held() -> Generator[threading.Event]:
    """A lock that a blocking tool waits for; opened at the end, so that no thread is left."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


async def endless() -> None:
    await asyncio.Event().wait()


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

        marked = tool(effect=effect, timeout=SOON, name="slow")
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


async def test_a_tool_sees_the_callers_task_and_context(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def look() -> dict[str, Any]:
        first = (place.get(), id(asyncio.current_task()))
        await asyncio.sleep(0)
        assert first == (place.get(), id(asyncio.current_task()))
        return {"place": first[0], "task": str(first[1])}

    @tool(effect="pure")
    def look_in_a_thread() -> str:
        return place.get()

    gate.add(look, look_in_a_thread)
    token = place.set("here")
    try:
        seen = (await gate.call("look", caller=ME)).data
        assert seen == {"place": "here", "task": str(id(asyncio.current_task()))}
        assert (await gate.call("look_in_a_thread", caller=ME)).data == "here"
    finally:
        place.reset(token)


async def test_a_task_group_in_a_tool_works_and_its_failure_is_told(gate: Toolgate) -> None:
    @tool(effect="pure")
    async def grouped(fail: bool) -> list[int]:  # noqa: FBT001
        async def one(number: int) -> int:
            await asyncio.sleep(0)
            if fail and number == 1:
                raise ValueError("one of them")
            return number

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(3)]
        return [task.result() for task in tasks]

    gate.add(grouped)
    assert (await gate.call("grouped", {"fail": False}, caller=ME)).data == [0, 1, 2]
    output = await gate.call("grouped", {"fail": True}, caller=ME)
    assert output.error is not None
    assert "ExceptionGroup" in output.error.message


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


# A limit that is never over.
NEVER: Any = SimpleNamespace(expired=False)


class TestRest:
    """`_rest` against what `await` itself would do."""

    @staticmethod
    async def rest(work: Any) -> Any:
        try:
            waiting = work.send(None)
        except StopIteration as done:
            return done.value
        return await _rest(work, waiting, NEVER)

    async def test_it_returns_what_the_coroutine_returns_after_many_waits(self) -> None:
        async def work() -> int:
            total = 0
            for number in range(5):
                await asyncio.sleep(0)
                total += await asyncio.sleep(0, number)
            return total

        assert await self.rest(work()) == 10

    async def test_an_exception_comes_out_as_it_went_in(self) -> None:
        async def work() -> None:
            await asyncio.sleep(0)
            raise LookupError("mine")

        with pytest.raises(LookupError, match="mine"):
            await self.rest(work())

    async def test_an_exception_thrown_in_can_be_caught_inside(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            try:
                await future
            except LookupError:
                await asyncio.sleep(0)
                return "caught"
            return ""

        asyncio.get_running_loop().call_soon(future.set_exception, LookupError())
        assert await self.rest(work()) == "caught"

    def test_closing_it_closes_the_coroutine_and_runs_what_stands_in_finally(self) -> None:
        steps: list[str] = []

        class Pause:
            def __await__(self) -> Generator[str, None, None]:
                yield "paused"

        async def work() -> None:
            try:
                await Pause()
            finally:
                steps.append("closed")

        async def outer() -> None:
            coroutine = work()
            await _rest(coroutine, coroutine.send(None), NEVER)

        driven = outer()
        assert driven.send(None) == "paused"
        driven.close()
        assert steps == ["closed"]

    def test_what_is_sent_and_thrown_reaches_the_coroutine(self) -> None:
        class Ask:
            def __await__(self) -> Generator[str, Any, Any]:
                return (yield "asked")

        async def work() -> list[Any]:
            first = await Ask()
            try:
                await Ask()
            except LookupError as error:
                return [first, str(error), await Ask()]
            return []

        async def outer() -> list[Any]:
            coroutine = work()
            return await _rest(coroutine, coroutine.send(None), NEVER)

        driven = outer()
        assert driven.send(None) == "asked"
        assert driven.send("one") == "asked"
        assert driven.throw(LookupError("two")) == "asked"
        with pytest.raises(StopIteration) as done:
            driven.send("three")
        assert done.value.value == ["one", "two", "three"]


@pytest.mark.req("P1")
async def test_blocking_functions_run_side_by_side_and_the_loop_goes_on(gate: Toolgate) -> None:
    together = threading.Barrier(8)

    @tool(effect="pure")
    def meets() -> str:
        # Eight have to be here at once: one thread after the other would never get past.
        together.wait(20)
        return threading.current_thread().name

    gate.add(meets)
    calls = asyncio.gather(*(gate.call("meets", caller=ME) for _ in range(8)))
    outputs = await calls
    names = {output.data for output in outputs}
    assert len(names) == 8
    assert all(name.startswith("toolgate-tool") for name in names)
    assert threading.current_thread().name not in names


@pytest.mark.req("P1")
async def test_a_blocked_function_never_holds_up_one_that_comes_later() -> None:
    # One thread is idle when two jobs come: the second must not be left to the first one's thread.
    for _ in range(100):
        threads = Threads()
        event = threading.Event()
        await threads.run(lambda: None)
        first = asyncio.create_task(threads.run(partial(event.wait, 20)))
        await asyncio.sleep(0)
        await threads.run(event.set)
        assert await first
        threads.close()


@pytest.mark.req("X4")
async def test_a_job_that_nobody_waits_for_any_more_is_not_begun() -> None:
    ran: list[str] = []
    threads = Threads()
    with held() as event:
        first = asyncio.create_task(threads.run(partial(event.wait, 20)))
        await asyncio.sleep(0)
        # A thread that is said to be idle, and is slow to come.
        threads._idle += 1  # pyright: ignore[reportPrivateUsage]
        late = asyncio.create_task(threads.run(partial(ran.append, "late")))
        await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(NotBegun):
            await late
    assert await first
    await threads.run(lambda: None)
    threads.close()
    assert ran == []


@pytest.mark.req("P1")
@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
async def test_a_blocking_function_cannot_stop_the_process(
    gate: Toolgate, raised: type[BaseException]
) -> None:
    @tool(effect="pure")
    def leaves() -> None:
        raise raised

    gate.add(leaves)
    output = await gate.call("leaves", caller=ME)
    assert output.error is not None
    assert output.error.code == "execution_failed"
    assert (await gate.call("echo", {"text": "still here"}, caller=ME)).ok


@pytest.mark.req("P1")
async def test_an_async_function_that_exits_fails_like_any_other(gate: Toolgate) -> None:
    @tool(effect="irreversible")
    async def leaves(soon: bool) -> None:  # noqa: FBT001
        if not soon:
            await asyncio.sleep(0)
        raise SystemExit(3)

    gate.add(leaves)
    for soon in (True, False):
        output = await gate.call("leaves", {"soon": soon}, caller=ME)
        assert output.error is not None
        assert "SystemExit" in output.error.message
    assert [state for _tool, state, _code in await states(gate)] == ["unknown", "unknown"]


async def test_an_answer_that_comes_when_its_caller_has_gone_disturbs_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    finished = threading.Event()
    ids: list[str] = []
    async with open_gate(tmp_path) as gate:
        with held() as event:
            # Long enough for its thread to begin on a machine that is busy.
            @tool(effect="irreversible", timeout=1)
            def slow(call: Call) -> None:
                ids.append(call.id)
                event.wait()
                finished.set()
                raise ValueError("too late")

            gate.add(slow)
            assert (await gate.call("slow", caller=ME)).status == "unknown"
        await asyncio.to_thread(finished.wait, 20)
        await asyncio.sleep(0)
        [row] = journal_rows(tmp_path, ids[0])
    assert row["state"] == "unknown", "a late end is not taken for the call's"
    assert "too late" not in caplog.text
