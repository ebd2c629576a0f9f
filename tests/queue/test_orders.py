"""Of one order one call runs at a time, also where one comes to light late: on a real PostgreSQL.

Numbers are given before rows are committed. Two transactions that do not see each other's rows
could each take one; every step here is held where that is so.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection
from sqlalchemy.util import await_only

from tests.queue.stand import LONG, ended, item, names
from tests.store.conftest import opened
from tests.store.places import POSTGRES
from toolgate.queue.queue import Taken
from toolgate.store.database import HOUSE, Database
from toolgate.store.queue import TableQueue

pytestmark = [pytest.mark.req("P6"), pytest.mark.timeout(60)]
T = TypeVar("T")
Take = Callable[[TableQueue, str], Coroutine[Any, Any, Sequence[Taken]]]
_WAITS = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


class Held:
    """A database whose writes, once it has begun, wait to be committed until they may be."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._happened = asyncio.Event()
        self._may = asyncio.Event()
        self._work: asyncio.Task[Any] | None = None

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        def held(connection: Connection) -> T:
            found = work(connection)
            self._happened.set()
            await_only(self._may.wait())
            return found

        return await self._database.write(work if self._work is None else held, tenant=tenant)

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        return await self._database.read(work, tenant=tenant)

    async def ask(
        self, question: str, values: tuple[str, ...] = (), *, tenant: str = ""
    ) -> Sequence[Sequence[Any]]:
        return await self._database.ask(question, values, tenant=tenant)

    async def close(self) -> None:
        """It is another's."""

    async def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Until all of it has happened, and nobody sees it."""
        self._work = asyncio.create_task(work)
        await self._happened.wait()

    async def commit(self) -> Any:
        assert self._work is not None
        self._may.set()
        return await self._work


async def _take(queue: TableQueue, _name: str) -> Sequence[Taken]:
    return await queue.take(10, LONG)


async def _claim(queue: TableQueue, name: str) -> Sequence[Taken]:
    return await queue.claim([name], LONG)


@pytest.fixture
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    async with AsyncExitStack() as stack:
        yield await opened(POSTGRES, tmp_path, request, stack)


@pytest.mark.parametrize("second", [_take, _claim])
@pytest.mark.parametrize("first", [_take, _claim])
async def test_one_that_comes_to_light_while_a_later_one_is_being_taken_waits_for_it(
    database: Database, first: Take, second: Take
) -> None:
    queue = TableQueue(database)
    late, taking = Held(database), Held(database)
    taker = TableQueue(taking)
    # What it does when it takes for the first time, it has done.
    assert await taker.take(1, LONG) == []
    await taker.close()
    await late.begin(TableQueue(late).put(item("a1", order="a")))
    await queue.put(item("a2", order="a"))
    # The first is not there yet, so the second one is taken; and nobody sees that so far.
    await taking.begin(first(taker, "a2"))
    await late.commit()
    other = asyncio.create_task(second(queue, "a1"))
    async with asyncio.timeout(20):
        while not other.done() and not await database.ask(_WAITS, tenant=HOUSE):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    (held,) = await taking.commit()
    assert held.call_id == "a2"
    assert names(await other) == [], "both would run at the same time"
    assert await queue.end(ended(held))
    assert names(await second(queue, "a1")) == ["a1"]
    await queue.close()
