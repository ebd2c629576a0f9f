"""What an end adds to a lease ends at the bound as well, on every store."""

from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from tests.store.entries import entry
from toolgate.ledger.budget import FULL, Balance
from toolgate.ledger.owner import Owner
from toolgate.ledger.state import State
from toolgate.spec.cost import MOST
from toolgate.store.budgets import TableBudgets
from toolgate.store.database import Database
from toolgate.store.journal import TableJournal
from toolgate.store.records import budget_leases

pytestmark = pytest.mark.req("X9", "D1")
LEASE = Balance(id="a", tenant="acme", metric="money", period="2026-11", left=0, behind=0)


async def ended(database: Database, before: int, amount: int) -> Any:
    """What a lease has spent once a call has ended that cost so much."""
    owner = Owner(lease=60)
    journal = TableJournal(database)
    await TableBudgets(database, owner).write([LEASE])
    lease = budget_leases.update().where(budget_leases.c.id == "a").values(spent=before)
    await database.write(lambda connection: connection.execute(lease))
    begun = await journal.begin(entry())
    over = msgspec.structs.replace(
        begun.entry, state=State.SUCCEEDED, result=b'{"data":1}', charges=(("a", amount),)
    )
    assert (await journal.end(over)).accepted
    spent = sa.select(budget_leases.c.spent).where(budget_leases.c.id == "a")
    return await database.read(lambda connection: connection.execute(spent).scalar_one())


@pytest.mark.parametrize(
    ("before", "amount", "after"),
    [
        (5, 7, 12),
        (FULL - 5, 7, FULL),
        (FULL, MOST, FULL),
        # By how much it is over is not known.
        (FULL, -MOST, FULL),
        (2**63 - 5, MOST, FULL),
    ],
)
async def test_an_end_never_adds_more_than_can_be_counted(
    database: Database, before: int, amount: int, after: int
) -> None:
    found = await ended(database, before, amount)
    assert (type(found), found) == (int, after)
