"""Budgets through the front door: what a plan holds, what costs, and what costs nothing."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.limits.house import ME, look, open_limited, outcome, outcomes, put, ran, send, used
from toolgate import Extension, Output, Priority, ToolError, Toolgate, Turn, tool
from toolgate.errors import BudgetExceeded, InvalidRequest
from toolgate.ledger.budget import end_of, period_of
from toolgate.settings.execution import Approvals
from toolgate.settings.settings import Settings

pytestmark = pytest.mark.req("X9")


@pytest.mark.parametrize(("plan", "most"), [("free", 100), ("starter", 1_000)])
async def test_a_plan_holds_so_many_calls_a_month_and_no_more(
    tmp_path: Path, plan: str, most: int
) -> None:
    async with open_limited(tmp_path, default_plan=plan) as gate:
        gate.add(look)
        found = await outcomes(gate, "look", most + 50)
        assert found.count("success") == most
        assert found.count("budget_exceeded") == 50
        assert await used(gate) == most


@pytest.mark.parametrize("name", ["look", "put", "send"])
async def test_five_hundred_at_once_on_a_budget_of_a_hundred_are_a_hundred(
    tmp_path: Path, name: str
) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look, put, send)
        await gate.tenancy.set_budget("acme", "tool_calls", 100)
        found = await outcomes(gate, name, 500)
        assert (found.count("success"), found.count("budget_exceeded")) == (100, 400)
        assert await used(gate) == 100
        assert await outcome(gate, name) == "budget_exceeded"


async def test_an_enterprise_is_counted_and_never_refused(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look, send)
        assert (await outcomes(gate, "look", 300)).count("success") == 300
        assert (await outcomes(gate, "send", 20)).count("success") == 20
        assert await used(gate) == 320


async def test_a_tenants_own_plan_and_its_own_budget_take_the_place_of_the_settings(
    tmp_path: Path,
) -> None:
    async with open_limited(tmp_path, default_plan="team") as gate:
        gate.add(look)
        await gate.tenancy.set_plan("acme", "free")
        assert (await outcomes(gate, "look", 120)).count("success") == 100
        await gate.tenancy.set_budget("acme", "tool_calls", 105)
        assert (await outcomes(gate, "look", 20)).count("success") == 5
        await gate.tenancy.set_plan("acme", "enterprise")
        assert await outcome(gate, "look") == "budget_exceeded"
        await gate.tenancy.set_budget("acme", "tool_calls", None)
        assert await outcome(gate, "look") == "success"
        other = msgspec.structs.replace(ME, tenant="globex")
        assert (await outcomes(gate, "look", 120, other)).count("success") == 120


async def test_what_is_used_is_known_after_a_restart(tmp_path: Path) -> None:
    for number in range(3):
        async with open_limited(tmp_path, default_plan="free") as gate:
            gate.add(look, send)
            assert await used(gate) == number * 40
            await outcomes(gate, "look", 30)
            await outcomes(gate, "send", 10)
            assert await used(gate) == (number + 1) * 40 if number < 2 else 100


async def test_a_refusal_says_what_is_used_and_when_there_is_more(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(look)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        first = await ran(gate, "look")
        with pytest.raises(BudgetExceeded) as refused:
            await gate.call("look", caller=ME)
        details = refused.value.details
        began_ns = int(first.call_id[5:21], 16)
        assert (details["metric"], details["limit"], details["used"]) == ("tool_calls", 1, 1)
        left = (end_of(period_of(began_ns)) - began_ns) / 1e9
        assert left - 60 <= details["retry_after"] <= left + 60
        assert "1 of 1 are used" in refused.value.message
        assert not refused.value.retryable


async def test_what_runs_holds_its_part_and_says_so(tmp_path: Path) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @tool(effect="pure")
    async def slow() -> None:
        """Wait."""
        inside.set()
        await go.wait()

    async with open_limited(tmp_path) as gate:
        gate.add(slow, look)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        running = asyncio.ensure_future(outcome(gate, "slow"))
        await inside.wait()
        with pytest.raises(BudgetExceeded) as refused:
            await gate.call("look", caller=ME)
        assert refused.value.details["retry_after"] == 1
        assert "running" in refused.value.message
        go.set()
        assert await running == "success"
        assert await outcome(gate, "look") == "budget_exceeded"


class _Answers(Extension):
    """Answers in the tool's place."""

    priority = Priority.NORMAL

    def before(self, _call: object) -> Output:
        return Output(status="success", data="from elsewhere")


class _Refuses(Extension):
    priority = Priority.NORMAL

    def before(self, _call: object) -> None:
        raise InvalidRequest("Not today.")


@pytest.mark.parametrize("extension", [_Answers, _Refuses])
@pytest.mark.parametrize("name", ["look", "send"])
async def test_what_did_not_run_costs_nothing(
    tmp_path: Path, extension: type[Extension], name: str
) -> None:
    async with open_limited(tmp_path, extensions=(extension(),)) as gate:
        gate.add(look, send)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        for _ in range(5):
            assert await outcome(gate, name) in {"success", "invalid_request"}
        assert await used(gate) == 0


async def test_a_tool_that_says_that_nothing_happened_costs_nothing(tmp_path: Path) -> None:
    @tool(effect="irreversible")
    async def shy() -> None:
        """Refuse."""
        raise ToolError("There is nothing to do.")

    @tool(effect="pure")
    async def broken() -> None:
        """Fail."""
        raise RuntimeError

    async with open_limited(tmp_path) as gate:
        gate.add(shy, broken)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        assert [await outcome(gate, "shy") for _ in range(3)] == ["error"] * 3
        assert [await outcome(gate, "broken") for _ in range(3)] == ["error"] * 3
        assert await used(gate) == 0


async def test_what_nobody_knows_the_end_of_costs(tmp_path: Path) -> None:
    @tool(effect="irreversible")
    async def torn() -> None:
        """Fail in the middle."""
        raise RuntimeError

    async with open_limited(tmp_path) as gate:
        gate.add(torn)
        await gate.tenancy.set_budget("acme", "tool_calls", 2)
        assert [await outcome(gate, "torn") for _ in range(2)] == ["unknown"] * 2
        assert await outcome(gate, "torn") == "budget_exceeded"
        assert await used(gate) == 2


async def test_a_replay_costs_nothing(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(send)
        await gate.tenancy.set_budget("acme", "tool_calls", 2)
        turn = Turn(group="t-1")
        first = await gate.call("send", {"what": "a"}, caller=ME, turn=turn)
        for _ in range(5):
            again = await gate.call("send", {"what": "a"}, caller=ME, turn=turn)
            assert (again.cached, again.call_id) == (True, first.call_id)
        assert await used(gate) == 1
        assert await outcome(gate, "send") == "success"


async def test_what_waits_for_a_person_costs_nothing(tmp_path: Path) -> None:
    @tool(effect="irreversible", requires_approval=True)
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        for amount in range(3):
            assert await outcome(gate, "pay", amount=amount) == "pending_approval"
        assert await used(gate) == 0


async def test_who_goes_away_before_it_is_drawn_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(send)
        await gate.tenancy.set_budget("acme", "tool_calls", 10)
        calls = [asyncio.ensure_future(outcome(gate, "send")) for _ in range(10)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        # What began before it was cancelled may have happened, and costs.
        await outcomes(gate, "send", 20)
        assert await used(gate) == 10


@pytest.mark.parametrize("most", [100, None], ids=["a budget", "none"])
async def test_a_read_that_a_person_agreed_to_costs_as_any_other(
    tmp_path: Path, most: int | None
) -> None:
    settings = Settings(root=tmp_path, approvals=Approvals(mode="always"))
    async with Toolgate.open(settings) as gate:
        gate.add(look)
        if most is not None:
            await gate.tenancy.set_budget("acme", "tool_calls", most)
        for number in range(2):
            pending = await gate.call("look", {"what": str(number)}, caller=ME)
            assert pending.error is not None
            assert await used(gate) == number
            await gate.approvals.approve(pending.error.details["approval_id"], by="boss")
            assert (await gate.call("look", {"what": str(number)}, caller=ME)).ok
            assert await used(gate) == number + 1
