"""Amounts that no database can count: they end at a bound, and are nobody else's harm."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.limits.house import ME, look, open_limited, outcome, put, used
from tests.limits.test_budgets import MONTH, Place, brief, drawn, place, stands
from toolgate import Caller, tool
from toolgate.errors import BudgetExceeded, StoreUnavailable
from toolgate.executor.limits import purses as purses_
from toolgate.executor.limits.purses import Purses, exceeded
from toolgate.ledger import purse as purse_
from toolgate.ledger.budget import FULL, Balance, Drawn, added
from toolgate.ledger.purse import Purse
from toolgate.spec.cost import MOST, UNIT
from toolgate.testing.budgets import MemoryBudgets

pytestmark = pytest.mark.req("X9", "D1")
# The fixtures of the suite beside it.
__all__ = ["brief", "place"]
LARGEST = 2**63 - 1
MUCH = 10**9
GOOD = Caller(tenant="good", agent="clerk")


@tool(effect="pure", costs={"money": "$args.amount"})
async def read(amount: float) -> str:
    """Read something dear."""
    return str(amount)


def test_two_full_ones_and_a_call_still_fit_a_whole_number() -> None:
    assert 2 * FULL + MOST < LARGEST
    assert added(FULL - 1, MOST) == FULL
    # By how much it is over is not known, so nothing is known to be left.
    assert added(FULL, -MOST) == FULL
    assert added(MOST, -1) == MOST - 1


async def test_what_is_spent_without_end_is_full_and_stays_so(place: Place) -> None:
    for number in range(12):
        await place.budgets.write([stands(f"l{number}", left=FULL, behind=LARGEST * 3)])
    assert await place.used() == (FULL, FULL)
    assert await drawn(place, stands("m"), [1], 10**18) == 0
    assert await place.used(tenant="globex") == (0, 0)


async def test_side_effects_without_end_fill_a_lease(place: Place) -> None:
    await drawn(place, stands("a"), [60], 100)
    for _ in range(3):
        await place.charge(("a", FULL - 5))
    assert (await place.used())[0] == FULL
    await place.charge(("a", -MOST))
    assert (await place.used())[0] == FULL
    assert (await place.budgets.write([stands("a")]))["a"] == FULL
    assert await drawn(place, stands("b"), [1], 10**18) == 0


async def test_leases_that_are_added_up_are_full_too() -> None:
    now = [0]
    budgets = MemoryBudgets(now_ns=lambda: now[0])
    await budgets.write([stands("a", behind=LARGEST), stands("b", behind=LARGEST)], over=True)
    now[0] = 2 * 86_400 * 10**9
    assert await budgets.fold() == 2
    assert (await budgets.usage(MONTH))["acme", "money"].used == FULL


def test_a_purse_that_is_full_gives_nothing_away() -> None:
    purse = Purse("p", "acme", "money", MONTH, 100)
    purse.drawn(10, 1_000)
    assert purse.take(1, 0)
    purse.spend(1, 2 * FULL)
    assert purse.balance(0).behind == FULL
    purse.let_go()
    assert not purse.take(1, 0)
    purse.spent_on_record(0, 2 * FULL)
    purse.let_go()
    purse.on_record(FULL)
    assert purse.available == 0
    assert not purse.take(1, 0)


def told(error: BudgetExceeded) -> str:
    return error.message


def test_who_is_refused_hears_that_it_is_at_least_so_much() -> None:
    purse = Purse("p", "acme", "money", MONTH, 100 * UNIT)
    full = exceeded(purse, Drawn(granted=0, used=FULL, held=0), UNIT, 0)
    assert "at least 2,000,000,000,000 of 100 are used" in told(full)
    over = exceeded(purse, Drawn(granted=0, used=100 * UNIT, held=0), UNIT, 0)
    assert "at least" not in told(over)


async def spend(root: Path) -> list[tuple[str, float, bool]]:
    """A tenant spends more than a database can count; what is then known of another."""
    async with open_limited(root) as gate:
        gate.add(read, look, put)
        for _ in range(9_300):
            assert (await gate.call("read", {"amount": MUCH}, caller=ME)).ok
        for _ in range(5):
            assert await outcome(gate, "look", GOOD) == "success"
        assert await used(gate, tenant="good") == 5
    async with open_limited(root) as gate:
        lines = [*await gate.usage.lines(tenant="acme"), *await gate.usage.lines(tenant="good")]
        return [(line.metric, line.used, line.at_least) for line in lines]


async def test_one_tenant_without_end_keeps_nobody_from_being_counted(tmp_path: Path) -> None:
    assert await spend(tmp_path) == [
        ("money", 2_000_000_000_000, True),
        ("tool_calls", 9_300, False),
        ("tool_calls", 5, False),
    ]


def unbounded(amount: int) -> int:
    return amount


async def test_without_the_bound_the_other_is_counted_and_the_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(purse_, "bounded", unbounded)
    monkeypatch.setattr("toolgate.store.budgets.bounded", unbounded)
    async with open_limited(tmp_path) as gate:
        gate.add(read, look)
        for _ in range(9_300):
            assert (await gate.call("read", {"amount": MUCH}, caller=ME)).ok
        assert await outcome(gate, "look", GOOD) == "success"
        assert await used(gate, tenant="good") == 1
        with pytest.raises(StoreUnavailable, match="What 'acme' has spent cannot be written"):
            await used(gate)
    assert "OverflowError" in caplog.text


class Picky(MemoryBudgets):
    """Takes no purse of one tenant."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        super().__init__()
        self.error = error
        self.writes = 0

    async def write(self, balances: Sequence[Balance], *, over: bool = False) -> Mapping[str, int]:
        self.writes += 1
        if any(one.tenant.startswith("bad") for one in balances):
            raise self.error()
        return await super().write(balances, over=over)


def spent(purses: Purses, *tenants: str) -> None:
    for tenant in tenants:
        purses.purse(tenant, "money", MONTH, None).spend(0, 7)


async def counted(budgets: MemoryBudgets) -> set[str]:
    return {tenant for (tenant, _), one in (await budgets.usage(MONTH)).items() if one.used}


@pytest.mark.parametrize("error", [OverflowError, lambda: StoreUnavailable("It is away.")])
async def test_a_purse_that_cannot_be_written_keeps_no_other_from_it(error: Any) -> None:
    budgets = Picky(error)
    purses = Purses(budgets)
    spent(purses, "bad1", "bad2", "bad3", "one", "two")
    for _ in range(3):
        assert {"bad1", "bad2", "bad3"} <= (await purses.flush()).keys()
    assert await counted(budgets) == {"one", "two"}
    await purses.close()
    assert await counted(budgets) == {"one", "two"}


async def test_a_store_that_is_away_is_not_asked_once_for_every_purse() -> None:
    budgets = Picky(lambda: StoreUnavailable("It is away."))
    purses = Purses(budgets)
    spent(purses, *(f"bad{number}" for number in range(100)))
    assert len(await purses.flush()) == 100
    assert budgets.writes == 3


async def test_with_one_transaction_for_all_nobody_would_be_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def together(self: Any, kept: Sequence[Any], *, over: bool = False) -> list[Any]:
        if kept:
            await self._write(kept, over=over)
        return []

    monkeypatch.setattr(purses_.Purses, "_written", together)
    budgets = Picky(OverflowError)
    purses = Purses(budgets)
    spent(purses, "bad", "one")
    with pytest.raises(OverflowError):
        await purses.flush()
    assert await counted(budgets) == set()
