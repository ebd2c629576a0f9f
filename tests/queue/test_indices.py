"""What is over stays for a day: nothing that is asked all the time looks at it."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from tests.queue.stand import LONG, Stand, ended, in_tables, item
from tests.store.conftest import opened
from tests.store.places import FILE, POSTGRES
from toolgate.store import records
from toolgate.store.database import HOUSE, Database

pytestmark = pytest.mark.req("P6")
_OVER = 5_000


class Yard:
    """A queue in which nearly all calls are over, and the statements that were asked of it."""

    def __init__(self, stand: Stand, database: Database) -> None:
        self.stand = stand
        self._database = database

    async def plans(self, asked: Mapping[str, Any]) -> dict[str, str]:
        """How the database goes about them."""

        def work(connection: Connection) -> dict[str, str]:
            word = "EXPLAIN" if connection.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
            found: dict[str, str] = {}
            for statement, values in asked.items():
                rows = connection.exec_driver_sql(f"{word} {statement}", values).all()
                found[statement] = "\n".join(str(row[-1]) for row in rows)
            return found

        return await self._database.write(work, tenant=HOUSE)

    async def visited(self, asked: Mapping[str, Any]) -> int:
        """How many rows of the queue PostgreSQL looks at for them."""

        def rows(plan: Any) -> int:
            own = (
                plan["Actual Rows"] * plan["Actual Loops"] * (plan.get("Relation Name") == "queue")
            )
            return own + sum(rows(part) for part in plan.get("Plans", ()))

        def work(connection: Connection) -> int:
            word = "EXPLAIN (ANALYZE, FORMAT JSON)"
            return sum(
                rows(connection.exec_driver_sql(f"{word} {said}", values).scalar_one()[0]["Plan"])
                for said, values in asked.items()
            )

        return await self._database.write(work, tenant=HOUSE)


@contextmanager
def heard() -> Generator[dict[str, Any]]:
    """What is asked about the queue meanwhile, with the values of the last time."""
    asked: dict[str, Any] = {}

    def hear(_c: Any, _cursor: Any, statement: str, values: Any, _e: Any, many: bool) -> None:  # noqa: FBT001
        if "queue" in statement and "INSERT" not in statement and "EXPLAIN" not in statement:
            asked[statement] = values[0] if many else values

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


def _row(number: int) -> dict[str, Any]:
    return {
        "call_id": f"over-{number}",
        "tenant_id": f"t{number % 5}",
        "tool_name": "pay",
        "agent_id": "billing",
        "user_id": "ann",
        "scope": "billing/1/ann",
        "order_key": f"o{number % 100}",
        "state": "done",
        "message": b"",
        "queued_ns": 1,
        "expires_ns": 1,
        "ended_ns": 1 << 62,
        "output": b"x" * 200,
        "told": 1,
    }


@pytest.fixture(params=[FILE, POSTGRES])
async def yard(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Yard]:
    async with AsyncExitStack() as stack:
        database = await opened(request.param, tmp_path, request, stack)
        stand = await stack.enter_async_context(in_tables(database))
        rows = [_row(number) for number in range(_OVER)]

        def work(connection: Connection) -> None:
            connection.execute(records.queue.insert(), rows)

        await database.write(work, tenant=HOUSE)
        for number in range(20):
            await stand.queue.put(item(f"a{number}", "t1", order=f"o{number % 4}"))
        await database.write(
            lambda connection: connection.exec_driver_sql("ANALYZE queue"), tenant=HOUSE
        )
        yield Yard(stand, database)


async def test_nothing_that_is_asked_all_the_time_looks_at_what_is_over(yard: Yard) -> None:
    queue, shipping, dead = yard.stand.queue, yard.stand.shipping, yard.stand.dead
    with heard() as asked:
        assert len(await shipping.send(2, window=3, again=LONG)) == 2
        assert len(await queue.take(2, LONG)) == 2
        assert list(await queue.take(2, LONG, but={"t1"})) == []
        held = await queue.claim([f"a{number}" for number in range(4)], LONG)
        assert await queue.end(ended(held[0], why="broken"))
        await queue.renew([held[1]], LONG)
        await queue.put(item("b0", "t2"))
        assert len(await shipping.send(9, window=9, again=LONG)) > 1
        assert len(await queue.take_sent(2, LONG)) == 2
        await queue.sweep()
        await queue.waiting()
        await queue.depth()
        assert len(await dead.page("")) == len(await dead.page("t1")) == 1
        await shipping.untold(5, after=0)
        await queue.over(["a0"])
    assert len(asked) >= 12
    for statement, plan in (await yard.plans(asked)).items():
        lines = [line.strip(" ->") for line in plan.splitlines()]
        read = [line for line in lines if line.startswith(("SCAN queue", "Seq Scan on queue"))]
        assert all("USING" in line for line in read), f"{statement}\n{plan}"


@pytest.mark.parametrize("yard", [POSTGRES], indirect=True)
async def test_the_oldest_is_found_without_a_look_at_all_that_waits(yard: Yard) -> None:
    with heard() as asked:
        await yard.stand.queue.depth()
    looks = {said: values for said, values in asked.items() if "count(" not in said}
    assert len(looks) == 1
    # One step for each tenant and one past the last, twenty calls wait.
    assert 0 < await yard.visited(looks) < 10


async def test_what_comes_before_a_call_in_its_order_is_found_among_what_is_open(
    yard: Yard,
) -> None:
    with heard() as asked:
        assert len(await yard.stand.queue.take(10, LONG)) == 4
    looks = [plan for said, plan in (await yard.plans(asked)).items() if "earlier" in said]
    assert looks
    for plan in looks:
        assert "ix_queue_ordered" in plan, plan
        assert "ix_queue_running" in plan or "ix_queue_held" in plan, plan
