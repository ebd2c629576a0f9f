"""One suite for every place where budgets are kept: the twin, SQLite and PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from tests.store.kept import KINDS, kept
from toolgate.ledger.budget import Balance, Budgets, Used
from toolgate.ledger.owner import Owner
from toolgate.store.budgets import TableBudgets, charge
from toolgate.store.database import Database
from toolgate.testing.budgets import MemoryBudgets

pytestmark = pytest.mark.req("X9", "D1")
MONTH = "2026-11"


class Place:
    """Budgets, and what a journal does beside them."""

    def __init__(self, budgets: Budgets, database: Database | None = None) -> None:
        self.budgets = budgets
        self._database = database

    async def charge(self, *charges: tuple[str, int]) -> None:
        if isinstance(self.budgets, MemoryBudgets):
            self.budgets.charge(charges)
        elif self._database is not None:
            await self._database.write(lambda connection: charge(connection, charges))

    async def used(self, metric: str = "money", tenant: str = "acme") -> tuple[int, int]:
        found = await self.budgets.usage(MONTH, tenant)
        one = found.get((tenant, metric), Used(used=0, held=0))
        return one.used, one.held


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Place]:
    """Budgets of which nothing is used; leases hold for a minute."""
    owner = Owner(lease=60)
    async with kept(
        request,
        tmp_path,
        lambda: Place(MemoryBudgets(owner)),
        lambda database: Place(TableBudgets(database, owner), database),
    ) as found:
        yield found


@pytest.fixture(params=KINDS)
async def brief(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Place]:
    """Leases that have ended as soon as they are granted."""
    owner = Owner(lease=0)
    async with kept(
        request,
        tmp_path,
        lambda: Place(MemoryBudgets(owner)),
        lambda database: Place(TableBudgets(database, owner), database),
    ) as found:
        yield found


def stands(id_: str, left: int = 0, behind: int = 0, tenant: str = "acme") -> Balance:
    return Balance(id=id_, tenant=tenant, metric="money", period=MONTH, left=left, behind=behind)


async def drawn(place: Place, balance: Balance, needs: Sequence[int], most: int) -> int:
    return (await place.budgets.draw(balance, needs, most)).granted


async def test_what_is_drawn_is_held_and_nobody_else_is_granted_it(place: Place) -> None:
    assert await drawn(place, stands("a"), [60], 100) == 60
    assert await place.used() == (0, 60)
    assert await drawn(place, stands("b"), [60], 100) == 0
    assert await drawn(place, stands("b"), [40], 100) == 40
    assert await drawn(place, stands("c"), [1], 100) == 0
    assert await drawn(place, stands("d", tenant="globex"), [100], 100) == 100


async def test_those_that_fit_are_granted_in_their_order(place: Place) -> None:
    assert await drawn(place, stands("a"), [50, 60, 30, 20], 100) == 100


async def test_far_from_its_end_a_budget_is_drawn_ahead(place: Place) -> None:
    most = 6_400 * 1_000_000
    assert await drawn(place, stands("a"), [1_000_000], most) == 100 * 1_000_000


async def test_what_its_holder_says_twice_counts_once(place: Place) -> None:
    await drawn(place, stands("a"), [60], 100)
    for _ in range(3):
        await place.budgets.write([stands("a", left=40, behind=20)])
    assert await place.used() == (20, 40)
    # An answer that was lost: its holder does not know of what it was granted.
    await drawn(place, stands("a", left=40, behind=20), [10], 100)
    await place.budgets.write([stands("a", left=40, behind=20)])
    assert await place.used() == (20, 40)


async def test_what_side_effects_spend_is_the_journals_and_nobody_writes_over_it(
    place: Place,
) -> None:
    await drawn(place, stands("a"), [60], 100)
    await place.charge(("a", 25))
    assert await place.used() == (25, 35)
    spent = await place.budgets.write([stands("a", left=60, behind=0)])
    assert spent["a"] == 25
    assert await place.used() == (25, 35)


async def test_what_costs_more_than_was_held_is_counted_whole(place: Place) -> None:
    await drawn(place, stands("a"), [10], 100)
    await place.charge(("a", 130))
    assert await place.used() == (130, 0)
    assert await drawn(place, stands("b"), [1], 100) == 0


async def test_what_is_over_holds_nothing_and_stays_spent(place: Place) -> None:
    await drawn(place, stands("a"), [60], 100)
    await place.charge(("a", 5))
    await place.budgets.write([stands("a", left=55, behind=10)], over=True)
    assert await place.used() == (15, 0)
    assert await drawn(place, stands("b"), [85], 100) == 85
    # A call of it that ends late still costs.
    await place.charge(("a", 1))
    assert (await place.used())[0] == 16


async def test_a_holder_that_is_gone_gives_back_what_it_did_not_spend(brief: Place) -> None:
    await drawn(brief, stands("a"), [100], 100)
    await brief.charge(("a", 30))
    await brief.budgets.write([stands("a", left=80, behind=20)])
    assert await brief.used() == (50, 0)
    assert await drawn(brief, stands("b"), [50], 100) == 50


async def test_months_and_metrics_are_kept_apart(place: Place) -> None:
    await drawn(place, stands("a"), [100], 100)
    other = Balance(id="b", tenant="acme", metric="rows", period=MONTH, left=0, behind=7)
    later = Balance(id="c", tenant="acme", metric="money", period="2026-12", left=0, behind=0)
    await place.budgets.write([other])
    assert await drawn(place, later, [100], 100) == 100
    assert await place.used("rows") == (7, 0)
    assert set(await place.budgets.usage(MONTH)) == {("acme", "money"), ("acme", "rows")}


async def test_what_ended_just_now_is_not_added_up_yet(place: Place) -> None:
    await place.budgets.write([stands("a", behind=7)], over=True)
    assert await place.budgets.fold() == 0
    assert await place.used() == (7, 0)


async def test_many_at_once_are_never_granted_more_than_there_is(place: Place) -> None:
    """One unit each: near its end a budget is drawn call by call."""
    most = 20 * 1_000_000
    found = await asyncio.gather(
        *(drawn(place, stands(f"l{number:03}"), [1_000_000], most) for number in range(60))
    )
    assert sum(found) == most
