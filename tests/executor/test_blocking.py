"""A function that blocks, or wants to exit, holds up and ends nobody but its own call."""

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.executor.tools import held
from tests.house import ME, journal_rows, open_gate, states
from toolgate import Call, Toolgate, tool
from toolgate.providers.threads import NotBegun, Threads


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
