"""What a call costs of metrics of its own: said, in its arguments, or in its result."""

import asyncio
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.limits.house import ME, open_limited, outcome, ran, used
from toolgate import ToolError, tool
from toolgate.errors import BudgetExceeded, InvalidArguments, InvalidSpecs
from toolgate.executor.limits.budget import budget_gate
from toolgate.spec.cost import MOST, UNIT, Cost, millionths, plain
from toolgate.spec.function import Binding

pytestmark = pytest.mark.req("X9")


@budget_gate(metric="money", amount="$args.amount")
@tool(effect="irreversible")
async def pay(amount: float, to: str = "ann") -> dict[str, Any]:
    """Pay somebody."""
    if to == "nobody":
        raise ToolError("There is nobody of that name.")
    return {"paid": amount, "to": to}


@tool(effect="pure", costs={"rows": "$result.rows"})
async def query(rows: float) -> dict[str, float]:
    """Look for rows."""
    return {"rows": rows}


@tool(effect="irreversible", costs={"rows": "$result.rows", "writes": 2})
async def write(rows: int) -> dict[str, int]:
    """Write rows."""
    return {"rows": rows}


async def test_an_amount_of_the_arguments_is_held_before_it_runs(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "money", 100)
        assert await outcome(gate, "pay", amount=60.5) == "success"
        with pytest.raises(BudgetExceeded) as refused:
            await gate.call("pay", {"amount": 60}, caller=ME)
        assert (refused.value.details["metric"], refused.value.details["used"]) == ("money", 60.5)
        assert await outcome(gate, "pay", amount=39.5) == "success"
        assert await outcome(gate, "pay", amount=0.000001) == "budget_exceeded"
        assert await used(gate, "money") == 100
        assert await used(gate) == 2


async def test_money_of_many_at_once_is_never_more_than_there_is(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "money", 100)
        found = await asyncio.gather(*(outcome(gate, "pay", amount=7) for _ in range(60)))
        assert found.count("success") == 14
        assert await used(gate, "money") == 98


async def test_what_one_budget_refuses_takes_nothing_from_the_others(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "tool_calls", 2)
        await gate.tenancy.set_budget("acme", "money", 10)
        for _ in range(5):
            assert await outcome(gate, "pay", amount=11) == "budget_exceeded"
        assert await outcome(gate, "pay", amount=5) == "success"
        assert await outcome(gate, "pay", amount=5) == "success"


async def test_a_payment_that_did_not_happen_gives_its_money_back(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        await gate.tenancy.set_budget("acme", "money", 10)
        for _ in range(3):
            assert await outcome(gate, "pay", amount=10, to="nobody") == "error"
        assert await outcome(gate, "pay", amount=10) == "success"


@pytest.mark.parametrize("name", ["query", "write"])
async def test_what_only_the_result_tells_may_go_over_once(tmp_path: Path, name: str) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(query, write)
        await gate.tenancy.set_budget("acme", "rows", 10)
        await ran(gate, name, rows=4)
        await ran(gate, name, rows=100)
        assert await outcome(gate, name, rows=0) == "budget_exceeded"
        assert await used(gate, "rows") == 104


async def test_what_nobody_limits_is_counted(tmp_path: Path) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay, query, write)
        await ran(gate, "pay", amount=12.34)
        await ran(gate, "query", rows=5)
        await ran(gate, "write", rows=6)
        assert await used(gate, "money") == 12.34
        assert await used(gate, "rows") == 11
        assert await used(gate, "writes") == 2


@pytest.mark.parametrize("amount", [-1, -0.000001, 10**10, 1e300])
async def test_an_amount_that_is_none_is_refused_before_anything_runs(
    tmp_path: Path, amount: float
) -> None:
    async with open_limited(tmp_path) as gate:
        gate.add(pay)
        with pytest.raises(InvalidArguments, match="/amount"):
            await gate.call("pay", {"amount": amount}, caller=ME)
        assert await used(gate) == 0


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf])
async def test_what_is_no_number_never_passes_for_a_small_one(
    tmp_path: Path, amount: float
) -> None:
    """A schema may let it through: in JSON it would be nothing."""

    @tool(effect="irreversible", costs={"money": "$args.amount"})
    async def loose(amount: Any) -> None:
        """Pay."""

    async with open_limited(tmp_path) as gate:
        gate.add(loose)
        await gate.tenancy.set_budget("acme", "money", 10)
        for args in ({"amount": amount}, {"amount": "7"}, {"amount": True}, {"amount": None}, {}):
            with pytest.raises(InvalidArguments):
                await gate.call("loose", args, caller=ME)
        assert await used(gate) == 0


async def test_an_argument_that_is_left_out_costs_its_default(tmp_path: Path) -> None:
    @tool(effect="irreversible", costs={"money": "$args.amount"})
    async def tip(amount: float = 2.5) -> None:
        """Pay a little."""

    async with open_limited(tmp_path) as gate:
        gate.add(tip)
        await ran(gate, "tip")
        await ran(gate, "tip", amount=1)
        assert await used(gate, "money") == 3.5


async def test_a_result_that_does_not_say_its_cost_costs_what_was_held(tmp_path: Path) -> None:
    @tool(effect="pure", costs={"rows": "$result.rows"})
    async def vague(rows: Any) -> Any:
        """Answer anything."""
        return {"rows": rows}

    async with open_limited(tmp_path) as gate:
        gate.add(vague)
        for rows in ("many", -5, None, [1]):
            await ran(gate, "vague", rows=rows)
        assert await used(gate, "rows") == 4 / UNIT


def test_a_function_says_its_costs_by_a_decorator_or_by_a_field() -> None:
    assert Binding(pay).spec.costs == (Cost(metric="money", amount="$args.amount"),)

    @budget_gate(metric="tool_calls")
    @budget_gate(metric="mails")
    @tool(effect="irreversible", costs={"money": 0.5})
    def mail() -> None:
        """Send a mail."""

    assert Binding(mail).spec.costs == (
        Cost(metric="money", amount=0.5),
        Cost(metric="mails", amount=1),
    )


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ({"money": "$args.amonut"}, "amonut"),
        ({"money": "$arguments.amount"}, "refers to nothing"),
        ({"money": "$result"}, "refers to nothing"),
        ({"money": "amount"}, "no amount"),
        ({"money": -1}, "less than nothing"),
        ({"money": math.nan}, "not a number"),
        ({"money": True}, "not a number"),
        ({"Money": 1}, "no metric"),
        ({"tool_calls": 2}, "every call costs one"),
        ({f"m{number}": 1 for number in range(17)}, "at most 16"),
    ],
)
def test_costs_that_cannot_be_meant_are_refused_with_the_definition(
    costs: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidSpecs, match=told.replace("$", r"\$")):
        Binding(pay, costs=costs)


@given(st.integers(0, MOST // UNIT) | st.decimals(0, 10**9, places=6, allow_nan=False))
def test_amounts_come_back_as_they_were_written(amount: int | Decimal) -> None:
    assert millionths(amount) == Decimal(amount) * UNIT
    assert millionths(plain(millionths(amount))) == millionths(amount)


@given(st.floats())
def test_any_float_is_an_amount_or_refused(amount: float) -> None:
    try:
        found = millionths(amount)
    except ValueError:
        assert not 0 <= amount <= MOST / UNIT
    else:
        assert found >= amount * UNIT * (1 - 1e-12)
