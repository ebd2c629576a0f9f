"""Claims and ends that wait at the same time, and what came of each."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import sqlalchemy as sa

from tests.store.once import Tables
from tests.store.places import busy
from toolgate.ledger.journal import Basis
from toolgate.store import revision
from toolgate.store.records import audit_log, outbox
from toolgate.store.records import tool_execution_log as log
from toolgate.tenancy.parts import EVERYONE, TENANT

# What no two stores have in common: who wrote it, and when.
_OWN = frozenset({"created_ns", "owner", "lease_ns", "ended_ns", "expires_ns", "undo_until_ns"})


async def together(tables: Tables, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
    """All of them in one batch of SQLite's writer; an error is an answer."""
    async with busy(tables.database):
        waiting = [asyncio.ensure_future(one) for one in asked]
        await asyncio.sleep(0)
    return await asyncio.gather(*waiting, return_exceptions=True)


async def one_by_one(_: Tables, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
    """The same, each by itself."""
    return [(await asyncio.gather(one, return_exceptions=True))[0] for one in asked]


async def another_world(tables: Tables) -> Basis:
    """What is decided on it, once somebody has changed something for everyone."""
    return Basis(await tables.database.write(revision.bump), (EVERYONE, f"{TENANT}acme"))


async def rows(tables: Tables) -> list[dict[str, Any]]:
    """Every side effect on record, by its id."""
    found = await tables.rows(sa.select(log).order_by(log.c.call_id))
    return [
        {name: value for name, value in row._asdict().items() if name not in _OWN} for row in found
    ]


async def audited(tables: Tables) -> list[tuple[str, str]]:
    """The call and the state of each row of the audit."""
    found = await tables.rows(sa.select(audit_log.c.details))
    return sorted((row[0]["call_id"], row[0]["state"]) for row in found)


async def told(tables: Tables) -> Sequence[tuple[str, str]]:
    """The call and the kind of each event that waits."""
    found = await tables.rows(sa.select(outbox.c.kind, outbox.c.key))
    return sorted((row[1], row[0]) for row in found)
