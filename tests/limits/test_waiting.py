"""Who waits for a person holds nothing that others could use meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.limits.house import ME, eventually, open_limited, outcome, used
from toolgate import Output, Toolgate, tool
from toolgate.errors import BudgetExceeded

pytestmark = pytest.mark.req("X9", "S6")


@tool(effect="irreversible", requires_approval=True, costs={"money": "$args.amount"})
async def pay(amount: int) -> int:
    """Pay."""
    return amount


@tool(effect="pure", requires_approval=True)
async def peek() -> str:
    """Look at what is not for everybody."""
    return "secret"


@tool(effect="irreversible", costs={"money": "$args.amount"})
async def buy(amount: int) -> int:
    """Buy."""
    return amount


async def asked(gate: Toolgate, name: str, **args: Any) -> "tuple[asyncio.Task[Output], str]":
    """A call that waits for a person, and what it waits for."""
    call = asyncio.create_task(gate.call(name, args, caller=ME, wait_s=20))

    async def is_asked() -> bool:
        return bool(await gate.approvals.list("acme"))

    await eventually(is_asked)
    return call, (await gate.approvals.list("acme"))[0].id


async def test_the_rest_of_the_budget_is_there_for_others(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay, buy)
        await gate.tenancy.set_budget("acme", "money", 100)
        paying, approval = await asked(gate, "pay", amount=100)
        assert await outcome(gate, "buy", amount=60) == "success"
        await gate.approvals.approve(approval, by="boss")
        with pytest.raises(BudgetExceeded):
            await paying
        assert await used(gate, "money") == 60
        assert await used(gate) == 1


async def test_what_is_there_when_a_person_agrees_is_spent(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay, buy)
        await gate.tenancy.set_budget("acme", "money", 100)
        paying, approval = await asked(gate, "pay", amount=70)
        assert await outcome(gate, "buy", amount=30) == "success"
        await gate.approvals.approve(approval, by="boss")
        assert (await paying).data == 70
        assert await used(gate, "money") == 100
        assert await outcome(gate, "buy", amount=1) == "budget_exceeded"


async def test_a_read_that_waits_holds_no_call(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(peek, buy)
        await gate.tenancy.set_budget("acme", "tool_calls", 1)
        peeking, approval = await asked(gate, "peek")
        assert await outcome(gate, "buy", amount=1) == "success"
        await gate.approvals.approve(approval, by="boss")
        with pytest.raises(BudgetExceeded):
            await peeking
        assert await used(gate) == 1


async def test_what_no_budget_could_hold_is_refused_before_anybody_is_asked(
    tmp_path: Path,
) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "money", 100)
        with pytest.raises(BudgetExceeded):
            await gate.call("pay", {"amount": 101}, caller=ME, wait_s=20)
        assert not await gate.approvals.list("acme")
