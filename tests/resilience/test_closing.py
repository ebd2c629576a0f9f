"""A house that closes while calls run: they finish or end, and none is left open on record."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.house import ME, STORE, open_gate, until
from tests.server.serving import Answer, Serving
from tests.server.test_lifecycle import MODULE, TOOLS, recorded
from toolgate import tool
from toolgate.errors import Overloaded
from toolgate.runtime import Runtime
from toolgate.testing.house import in_memory
from toolgate.testing.journal import MemoryJournal

CALLS = 200


def states(root: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(root / STORE)) as connection:
        return connection.execute("SELECT state, error_code FROM tool_execution_log").fetchall()


@pytest.mark.req("S3")
async def test_what_runs_when_the_house_closes_is_waited_for(tmp_path: Path) -> None:
    began, go = asyncio.Event(), asyncio.Event()

    @tool(effect="irreversible")
    async def act() -> str:
        began.set()
        await go.wait()
        return "done"

    async with open_gate(tmp_path) as gate:
        gate.add(act)
        running = asyncio.create_task(gate.call("act", caller=ME))
        await began.wait()
        # The house is closing, and waiting for it, when this comes.
        asyncio.get_running_loop().call_later(0.05, go.set)
    assert (await running).data == "done"
    assert states(tmp_path) == [("succeeded", "")]


@pytest.mark.req("S3")
@pytest.mark.parametrize(
    ("effect", "state"),
    [("irreversible", "unknown"), ("idempotent", "unknown"), ("pure", "failed")],
)
async def test_what_does_not_end_is_ended_and_recorded_by_its_effect(
    effect: Any, state: str
) -> None:
    journal = MemoryJournal()
    began = asyncio.Event()
    cancelled: list[str] = []

    @tool(effect=effect)
    async def act() -> None:
        began.set()
        await asyncio.Event().wait()

    async with in_memory(act, journal=journal) as house:
        running = asyncio.create_task(house.call("act", caller=ME))
        running.add_done_callback(lambda task: cancelled.append("") if task.cancelled() else None)
        await began.wait()
        await house._executor.close(0.01)  # pyright: ignore[reportPrivateUsage]
        output = await running
        assert output.error is not None
        assert output.error.code == "timed_out"
        with pytest.raises(Overloaded, match="closing"):
            await house.call("act", caller=ME)
    assert cancelled == [], "a caller is answered, not cancelled"
    assert [str(entry.state) for entry in journal.calls if entry.error_code != "overloaded"] == [
        state
    ]


@pytest.mark.req("S3")
async def test_a_call_that_runs_may_still_make_those_it_needs() -> None:
    houses: list[Runtime] = []
    began, go = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def outer() -> Any:
        began.set()
        await go.wait()
        return (await houses[0].call("inner", caller=ME)).data

    @tool(effect="pure")
    async def inner() -> str:
        return "done"

    async with in_memory(outer, inner) as house:
        houses.append(house)
        running = asyncio.create_task(house.call("outer", caller=ME))
        await began.wait()
        close = asyncio.create_task(house._executor.close(20))  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)
        go.set()
        assert (await running).data == "done"
        await close


@pytest.mark.req("S3")
async def test_a_call_whose_coroutine_is_dropped_is_on_record() -> None:
    journal = MemoryJournal()

    @tool(effect="irreversible")
    async def act() -> None:
        await asyncio.Event().wait()

    async with in_memory(act, journal=journal) as house:
        dropped = house.call("act", caller=ME)
        dropped.send(None)
        await until(lambda: bool(journal.calls))
        dropped.close()
        await asyncio.sleep(0)
    assert [(str(one.state), one.error_code) for one in journal.calls] == [("unknown", "cancelled")]


@pytest.mark.req("S3")
async def test_a_server_that_is_stopped_loses_and_doubles_none_of_two_hundred(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "waiting.yaml").write_text(TOOLS, "utf-8")
    (tmp_path / "waiting_tools.py").write_text(MODULE, "utf-8")
    go = tmp_path / "go"
    answers: list[Answer] = []
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]

        def call(tool: str) -> None:
            answers.append(server.call(tool, {"path": str(go)}, key=key))

        names = ["wait_for", "wait_in_a_thread"] * (CALLS // 2)
        callers = [threading.Thread(target=call, args=(name,)) for name in names]
        for caller in callers:
            caller.start()
        await until(lambda: recorded(tmp_path, "started") == CALLS, seconds=40)
        server.process.terminate()
        await asyncio.sleep(0.1)
        go.touch()
        for caller in callers:
            caller.join(30)
        assert server.process.wait(40) == 0
    assert [(answer.status, answer.body["data"]) for answer in answers] == [(200, "done")] * CALLS
    assert [state for state, _code in states(tmp_path)] == ["succeeded"] * CALLS


STUBBORN = '''\
"""Tools that take no notice of being stopped."""

import asyncio
import threading


async def swallows() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass


def blocks() -> None:
    threading.Event().wait()
'''
STUBBORN_TOOLS = """\
tools:
  - name: swallows
    config: {module: stubborn_tools, function: swallows}
    effect: irreversible
    timeout: 1
  - name: blocks
    config: {module: stubborn_tools, function: blocks}
    effect: irreversible
    timeout: 1
"""


@pytest.mark.req("S3", "X4")
async def test_tools_that_cannot_be_stopped_do_not_keep_a_server_from_ending(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "stubborn.yaml").write_text(STUBBORN_TOOLS, "utf-8")
    (tmp_path / "stubborn_tools.py").write_text(STUBBORN, "utf-8")
    answers: list[Answer] = []
    with Serving(tmp_path) as server:
        key = server.greeting["keys"]["agent"]

        def call(name: str) -> None:
            answers.append(server.call(name, key=key))

        callers = [threading.Thread(target=call, args=(name,)) for name in ("swallows", "blocks")]
        for caller in callers:
            caller.start()
        await until(lambda: recorded(tmp_path, "started") == 2)
        server.process.terminate()
        assert server.process.wait(25) == 0
        for caller in callers:
            caller.join(10)
    assert [answer.body["status"] for answer in answers] == ["unknown"] * 2
    assert states(tmp_path) == [("unknown", "timed_out")] * 2
