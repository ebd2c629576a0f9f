"""Queued calls from all sides: as workers see them, as brokers do, and those that are dead."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from tests.store.conftest import TWIN, opened
from tests.store.places import MEMORY, PLACES, WALLED
from toolgate.queue.queue import Dead, Ended, Item, Queue, Taken
from toolgate.queue.shipping import Shipping
from toolgate.store import records
from toolgate.store.database import HOUSE, Database
from toolgate.store.dead import TableDead
from toolgate.store.queue_postgres import queue_at
from toolgate.store.shipping import TableShipping
from toolgate.testing.queue import MemoryQueue
from toolgate.testing.shipping import MemoryDead, MemoryShipping

# Also under row security: the queue is the house's, and its statements are many.
KINDS = (TWIN, *dict.fromkeys((*(place for place in PLACES if place != MEMORY), WALLED)))
FAR_NS = 1 << 62
# One that has ended by the time it is given, and one that outlasts every test.
OVER, LONG = 0.0, 1_000.0
EXPIRES = 60.0


class Stand(NamedTuple):
    """One queue. `others` are its workers in other processes."""

    queue: Queue
    shipping: Shipping
    dead: Dead
    others: Sequence[Queue]
    # Its number was given before all others, and it came to light only now.
    come_late: Callable[[str], Awaitable[None]]


def in_memory() -> Stand:
    queue = MemoryQueue(tells=True)

    async def come_late(name: str) -> None:
        queue.rows[name].number = min(row.number for row in queue.rows.values()) - 1

    return Stand(queue, MemoryShipping(queue), MemoryDead(queue, EXPIRES), [queue] * 3, come_late)


@asynccontextmanager
async def in_tables(database: Database) -> AsyncGenerator[Stand]:
    queues = [queue_at(database, tells=True) for _ in range(4)]
    shipping, dead = TableShipping(database), TableDead(database, EXPIRES)

    async def come_late(name: str) -> None:
        before = sa.select(sa.func.min(records.queue.c.id) - 1).scalar_subquery()
        moved = records.queue.update().where(records.queue.c.call_id == name).values(id=before)
        await database.write(lambda connection: connection.execute(moved), tenant=HOUSE)

    yield Stand(queues[0], shipping, dead, queues[1:], come_late)
    for one in queues:
        await one.close()


@asynccontextmanager
async def stood(request: pytest.FixtureRequest, folder: Path) -> AsyncGenerator[Stand]:
    """In the place that the test is run for, with nothing in it."""
    if request.param == TWIN:
        yield in_memory()
        return
    async with AsyncExitStack() as stack:
        database = await opened(request.param, folder, request, stack)
        yield await stack.enter_async_context(in_tables(database))


def item(name: str, tenant: str = "acme", *, order: str = "", expires_ns: int = FAR_NS) -> Item:
    return Item(
        call_id=name,
        tenant=tenant,
        tool="pay",
        agent="billing",
        user="ann",
        scope="billing/1/ann",
        order=order,
        message=f"asked {name}".encode(),
        expires_ns=expires_ns,
    )


def ended(taken: Taken, output: bytes = b"done", why: str = "") -> Ended:
    return Ended(call_id=taken.call_id, fence=taken.fence, output=output, why=why)


def names(found: Sequence[Taken]) -> list[str]:
    return [one.call_id for one in found]
