"""Behind a long backlog of few orders: what may go is found, without a look at all the rest."""

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from sqlalchemy import Connection

from tests.queue.stand import KINDS, LONG, Stand, ended, in_tables, item, names, stood
from tests.queue.test_indices import Yard, heard
from tests.store.conftest import opened
from tests.store.places import FILE, POSTGRES
from toolgate.queue.queue import Taken
from toolgate.store import backlog, records
from toolgate.store.database import HOUSE

pytestmark = pytest.mark.req("P6")
# More than is looked at in one statement.
MANY = backlog.LONG + 100


@pytest.fixture(params=KINDS)
async def stand(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stand]:
    async with stood(request, tmp_path) as made:
        yield made


async def all_of(stand: Stand, most: int) -> list[Taken]:
    """What may go, until nothing more does."""
    found: list[Taken] = []
    while taken := await stand.queue.take(most, LONG):
        found += taken
    return found


async def test_what_waits_for_nobody_is_found_behind_a_long_backlog(stand: Stand) -> None:
    for number in range(MANY):
        await stand.queue.put(item(f"a{number}", order=f"o{number % 3}"))
    assert names(await stand.queue.take(16, LONG)) == ["a0", "a1", "a2"]
    assert not await stand.queue.take(16, LONG)
    await stand.queue.put(item("loose"))
    await stand.queue.put(item("other", order="of its own"))
    assert names(await stand.queue.take(16, LONG)) == ["loose", "other"]
    assert not await stand.queue.take(16, LONG)


async def test_more_orders_than_one_look_reads_are_all_come_to(stand: Stand) -> None:
    for number in range(2 * MANY):
        await stand.queue.put(item(f"a{number}", order=f"o{number % MANY:04}"))
    held = await all_of(stand, 200)
    assert len(held) == MANY
    # By its name it is the last, and all before it are under way.
    await stand.queue.put(item("last", order="p"))
    assert names(await stand.queue.take(16, LONG)) == ["last"]
    assert await stand.queue.end(ended(held[-1]))
    assert names(await stand.queue.take(16, LONG)) == [f"a{2 * MANY - 1}"]


async def test_a_long_backlog_is_worked_off_whole_and_in_its_orders(stand: Stand) -> None:
    put: dict[str, list[str]] = defaultdict(list)
    for number in range(MANY):
        order = f"o{number % 4}" if number % 5 else ""
        await stand.queue.put(item(f"a{number}", order=order))
        put[order].append(f"a{number}")
    of = {name: order for order, each in put.items() for name in each}
    got: dict[str, list[str]] = defaultdict(list)
    while taken := await stand.queue.take(16, LONG):
        for one in taken:
            got[of[one.call_id]].append(one.call_id)
        assert len({of[one.call_id] for one in taken} - {""}) == len(
            [one for one in taken if of[one.call_id]]
        ), "two of one order"
        for one in taken:
            assert await stand.queue.end(ended(one))
    assert got == put


@pytest.fixture(params=[FILE, POSTGRES])
async def yard(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Yard]:
    """Ten times the backlog, of three orders that run."""
    async with AsyncExitStack() as stack:
        database = await opened(request.param, tmp_path, request, stack)
        stand = await stack.enter_async_context(in_tables(database))
        rows = [
            {
                "call_id": f"a{number}",
                "tenant_id": "acme",
                "tool_name": "pay",
                "agent_id": "",
                "user_id": "",
                "scope": "",
                "order_key": f"o{number % 3}",
                "state": "waiting",
                "message": b"",
                "queued_ns": 1,
                "expires_ns": 1 << 62,
                "output": b"",
            }
            for number in range(10 * backlog.LONG)
        ]

        def work(connection: Connection) -> None:
            connection.execute(records.queue.insert(), rows)
            connection.exec_driver_sql("ANALYZE queue")

        await database.write(work, tenant=HOUSE)
        assert len(await stand.queue.take(16, LONG)) == 3
        yield Yard(stand, database)


async def test_orders_that_wait_are_found_by_their_own_index(yard: Yard) -> None:
    with heard() as asked:
        assert not await yard.stand.queue.take(16, LONG)
        assert not await yard.stand.shipping.send(16, window=99, again=LONG)
    plans = await yard.plans(asked)
    [heads] = [plan for said, plan in plans.items() if "found(name" in said]
    assert "ix_queue_orders" in heads
    assert "ix_queue_ordered" in heads
    # Neither does it count, nor find the oldest, nor those without an order, by way of all rows.
    for part in ("AS counted", "AS near", "BETWEEN '' AND ''"):
        [plan] = [plan for said, plan in plans.items() if part in said]
        assert "ix_queue_waiting" in plan or "ix_queue_orders" in plan, plan
        assert not [line for line in plan.splitlines() if line.startswith("SCAN queue")]


@pytest.mark.parametrize("yard", [POSTGRES], indirect=True)
async def test_a_look_at_a_long_backlog_visits_few_of_its_rows(yard: Yard) -> None:
    with heard() as asked:
        assert not await yard.stand.queue.take(16, LONG)
    few = await yard.visited(asked)
    # The oldest, once to count them and once with what is before each.
    assert 0 < few < 5 * backlog.LONG


@pytest.mark.parametrize("yard", [POSTGRES], indirect=True)
async def test_without_a_look_at_each_order_the_whole_backlog_is_visited(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.store.fair.LONG", 1 << 30)
    with heard() as asked:
        assert not await yard.stand.queue.take(16, LONG)
    assert await yard.visited(asked) > 10 * backlog.LONG
