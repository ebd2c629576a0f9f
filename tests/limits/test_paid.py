"""What began is paid, whoever goes away meanwhile: a budget holds also for what may be repeated."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.house import until
from tests.limits.house import ME, eventually, open_limited, outcome, send, used
from toolgate import Call, Extension, ToolError, Toolgate, Turn, tool
from toolgate.errors import TimedOut
from toolgate.executor.extension import Priority

pytestmark = pytest.mark.req("X9")


async def left_alone(gate: Toolgate, name: str, running: "list[asyncio.Task[Any]]") -> None:
    """Call a tool that sees to it that its caller goes away."""
    running[:] = [asyncio.create_task(outcome(gate, name))]
    await asyncio.gather(*running, return_exceptions=True)


@pytest.mark.parametrize("effect", ["idempotent", "irreversible"])
async def test_who_goes_away_while_the_outcome_is_written_has_paid(
    tmp_path: Path, effect: Any
) -> None:
    ran: list[str] = []
    running: list[asyncio.Task[Any]] = []

    @tool(effect=effect)
    async def leave() -> None:
        """Do it, and cancel the caller right behind it."""
        ran.append("leave")
        asyncio.get_running_loop().call_soon(running[0].cancel)

    async with open_limited(tmp_path) as gate:
        gate.add(leave)
        await gate.tenancy.set_budget("acme", "tool_calls", 5)
        for _ in range(12):
            await left_alone(gate, "leave", running)
        assert len(ran) == 5
        await eventually(lambda: _is(gate, "tool_calls", 5))


class Door(Extension):
    """Holds a call up on its way, in front of its claim or behind it."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.reached = asyncio.Event()

    async def before(self, _call: Call) -> None:
        self.reached.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("most", [5, None], ids=["a budget", "none"])
@pytest.mark.parametrize("priority", [Priority.HIGH, Priority.NORMAL, Priority.LOW])
async def test_who_goes_away_before_it_began_has_not_paid(
    tmp_path: Path, priority: int, most: int | None
) -> None:
    """Also where nothing is limited, and it is only counted."""
    door = Door(priority)
    async with open_limited(tmp_path, extensions=[door]) as gate:
        gate.add(send)
        if most is not None:
            await gate.tenancy.set_budget("acme", "tool_calls", most)
        call = asyncio.create_task(outcome(gate, "send"))
        await door.reached.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await used(gate) == 0
        (entry,) = await gate.journal.entries("acme")
        assert (entry.state, entry.error_code) == ("failed", "cancelled")


@pytest.mark.parametrize("most", [5, None], ids=["a budget", "none"])
async def test_who_goes_away_while_it_runs_has_paid(tmp_path: Path, most: int | None) -> None:
    """The control; of a call inside it, which did not begin, that is not believed."""

    @tool(effect="irreversible")
    async def outer() -> None:
        """Do it, and more."""
        await gate.call("send", caller=ME)

    class Inner(Door):
        """Of calls inside only."""

        async def before(self, call: Call) -> None:
            if call.spec.name == "send":
                await super().before(call)

    door = Inner(Priority.LOW)
    async with open_limited(tmp_path, extensions=[door]) as gate:
        gate.add(outer, send)
        if most is not None:
            await gate.tenancy.set_budget("acme", "tool_calls", most)
        call = asyncio.create_task(outcome(gate, "outer"))
        await door.reached.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await used(gate) == 1
        states = {entry.tool: str(entry.state) for entry in await gate.journal.entries("acme")}
        assert states == {"outer": "unknown", "send": "failed"}


async def _is(gate: Toolgate, metric: str, amount: float) -> bool:
    return await used(gate, metric) == amount


async def test_what_goes_on_behind_its_timeout_is_unknown_and_paid(tmp_path: Path) -> None:
    done: list[int] = []
    go = threading.Event()

    @tool(effect="idempotent", timeout=0.5, costs={"money": "$args.amount"})
    def top_up(amount: int) -> None:
        """Add to an account, in a thread that nobody can stop."""
        go.wait()
        done.append(amount)

    async with open_limited(tmp_path) as gate:
        gate.add(top_up)
        await gate.tenancy.set_budget("acme", "money", 100)
        output = await gate.call("top_up", {"amount": 100}, caller=ME)
        assert output.error is not None
        assert (output.status, output.error.code) == ("unknown", "timed_out")
        assert output.error.retryable, "twice equals once"
        assert await outcome(gate, "top_up", amount=100) == "budget_exceeded"
        go.set()
        await until(lambda: done == [100])
        assert await used(gate, "money") == 100
        refused, first = await gate.journal.entries("acme")
        assert (refused.state, first.state) == ("failed", "unknown")


@pytest.mark.req("X2")
async def test_what_may_be_repeated_runs_again_under_the_key_of_one_that_timed_out(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    @tool(effect="idempotent", timeout=0.5)
    async def put() -> str:
        """Hang the first time."""
        ran.append("put")
        if len(ran) == 1:
            await asyncio.Event().wait()
        return "done"

    async with open_limited(tmp_path) as gate:
        gate.add(put)
        turn = Turn(group="t-1")
        first = await gate.call("put", caller=ME, turn=turn)
        again = await gate.call("put", caller=ME, turn=turn)
        third = await gate.call("put", caller=ME, turn=turn)
    assert (first.status, again.data, again.cached) == ("unknown", "done", False)
    assert (third.data, third.cached, third.call_id) == ("done", True, again.call_id)
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("error", "cost"),
    [
        (RuntimeError(), 1),
        (TimedOut("The far side did not answer."), 1),
        (ToolError("Nothing happened."), 0),
    ],
)
async def test_only_what_says_that_it_did_not_happen_is_free(
    tmp_path: Path, error: Exception, cost: int
) -> None:
    @tool(effect="idempotent")
    async def put() -> None:
        """Fail behind its effect."""
        raise error

    async with open_limited(tmp_path) as gate:
        gate.add(put)
        await gate.tenancy.set_budget("acme", "tool_calls", 5)
        await outcome(gate, "put")
        assert await used(gate) == cost


@pytest.mark.parametrize("budget", [3, None])
async def test_a_part_of_a_result_costs_as_the_whole(tmp_path: Path, budget: int | None) -> None:
    @tool(effect="pure", timeout=0.1)
    async def rows(*, any_at_all: bool) -> AsyncIterator[int]:
        """Give all there is, and do not end."""
        if any_at_all:
            yield 1
        await asyncio.Event().wait()

    async with open_limited(tmp_path) as gate:
        gate.add(rows)
        await gate.tenancy.set_budget("acme", "tool_calls", budget)
        assert await outcome(gate, "rows", any_at_all=False) == "error"
        assert await used(gate) == 0
        for _ in range(3):
            assert await outcome(gate, "rows", any_at_all=True) == "partial"
        assert await used(gate) == 3
        last = await outcome(gate, "rows", any_at_all=True)
        assert last == ("partial" if budget is None else "budget_exceeded")
