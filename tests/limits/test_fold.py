"""Leases that ended long ago are added up, once, and nothing of them is lost."""

import pytest

from tests.store.entries import entry
from tests.store.once import over
from toolgate.ledger.budget import Balance, Used
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import State
from toolgate.store.budgets import TableBudgets
from toolgate.store.journal import TableJournal
from toolgate.store.ledger import TableLedger
from toolgate.store.migrate import migrate
from toolgate.store.records import budget_leases
from toolgate.store.sqlite import Sqlite
from toolgate.testing.budgets import MemoryBudgets

pytestmark = pytest.mark.req("X9")
DAY = 24 * 3_600 * 1_000_000_000


def stands(id_: str, behind: int) -> Balance:
    return Balance(id=id_, tenant="acme", metric="rows", period="2026-11", left=3, behind=behind)


async def test_in_tables() -> None:
    database = Sqlite(None)
    await migrate(database)
    budgets = TableBudgets(database, Owner(lease=60))
    await budgets.write([stands("a", 7), stands("b", 8)], over=True)
    await budgets.write([stands("c", 1)])
    aged = budget_leases.update().where(budget_leases.c.id.not_like("c%"))
    await database.write(
        lambda connection: connection.execute(
            aged.values(lease_ns=budget_leases.c.lease_ns - 2 * DAY)
        )
    )
    before = await budgets.usage("2026-11")
    assert await budgets.fold() == 4
    assert await budgets.fold() == 0
    assert await budgets.usage("2026-11") == before
    assert before["acme", "rows"].used == 16
    await database.close()


@pytest.mark.parametrize("happened", [False, True])
async def test_what_an_unknown_call_cost_is_given_back_however_late_it_is_settled(
    *, happened: bool
) -> None:
    database = Sqlite(None)
    await migrate(database)
    journal = TableJournal(database)
    budgets, ledger = TableBudgets(database, journal.owner), TableLedger(database, journal.owner)
    await budgets.write([stands("a", 7)], over=True)
    begun = (await journal.begin(entry(charges=(("a", 5),)))).entry
    assert (await journal.end(over(begun, State.UNKNOWN))).accepted
    aged = budget_leases.update().values(lease_ns=budget_leases.c.lease_ns - 2 * DAY)
    await database.write(lambda connection: connection.execute(aged))
    assert await budgets.fold() == 1, "only what pure calls spent"
    assert (await budgets.usage("2026-11"))["acme", "rows"].used == 12
    assert await ledger.settle(begun, happened=happened, who="ann", why="she looked")
    used = 12 if happened else 7
    assert (await budgets.usage("2026-11"))["acme", "rows"].used == used
    assert await budgets.fold() == 1, "now nobody asks for it any more"
    assert (await budgets.usage("2026-11"))["acme", "rows"].used == used
    await database.close()


async def test_in_memory() -> None:
    now = [0]
    budgets = MemoryBudgets(Owner(lease=60), now_ns=lambda: now[0])
    await budgets.write([stands("a", 7)], over=True)
    now[0] = 2 * DAY
    await budgets.write([stands("b", 8)])
    assert await budgets.fold() == 1
    assert await budgets.usage("2026-11") == {("acme", "rows"): Used(used=15, held=3)}
