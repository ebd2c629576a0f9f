"""Queued calls in a table, as far as a broker carries them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.queue.queue import Item, Stage
from toolgate.queue.shipping import MOST_WHOLE, Parcel, Poison, Untold
from toolgate.store.database import HOUSE, Database, Statements
from toolgate.store.fair import Fair
from toolgate.store.hold import Hold
from toolgate.store.moment import now_ns
from toolgate.store.queue import waiting_row
from toolgate.store.records import DEAD, UNTOLD, WAITS, queue
from toolgate.store.text import storable
from toolgate.store.upsert import upsert
from toolgate.store.whose import gate

_ANY_WAITS = f"SELECT 1 FROM queue WHERE {WAITS} LIMIT 1"  # noqa: S608  no value stands in it
_ANY_UNTOLD = f"SELECT 1 FROM queue WHERE {UNTOLD} LIMIT 1"  # noqa: S608  nor here
# On PostgreSQL, where a statement of its own is one way there.
_TELL = (
    f"UPDATE queue SET told = 1 WHERE {gate(2)} "  # noqa: S608  no value stands in it
    "AND call_id = ANY($1::text[]) AND state IN ('done', 'dead')"
)
_SENT = (
    queue.c.id,
    queue.c.call_id,
    queue.c.tenant_id,
    queue.c.order_key,
    queue.c.message,
)
_moment: sa.BindParameter[int] = sa.bindparam("moment", type_=sa.BigInteger)
_least: sa.BindParameter[int] = sa.bindparam("least", type_=sa.BigInteger)
_these: sa.BindParameter[Any] = sa.bindparam("these", expanding=True)
_age = _moment - queue.c.queued_ns
# Built once: to build one takes longer than to run it.
_SEND = (
    queue.update()
    .where(queue.c.id.in_(_these))
    .values(state="sent", due_ns=_moment + sa.case((_age > _least, _age), else_=_least))
    .returning(*_SENT)
)
# What cannot be read is kept to be looked at, not to be sent on.
_MOST_KEPT = 10_000
_MOST_WHY = 500
_KEY = ("call_id",)
_unreadable = sa.select(queue.c.id).where(sa.text(DEAD), queue.c.tenant_id == "")


class TableShipping:
    """The port over a database."""

    def __init__(self, database: Database, hold: Hold | None = None) -> None:
        self._database = database
        self._hold = hold or Hold()
        self._server = database if isinstance(database, Statements) else None
        self._fair = Fair()

    async def waits(self) -> bool:
        """Without a lock."""
        return not self._hold.why and bool(await self._database.ask(_ANY_WAITS, tenant=HOUSE))

    async def send(self, most: int, *, window: int, again: float) -> Sequence[Parcel]:
        """On PostgreSQL, what another node is sending is left to it."""
        if self._hold.why:
            return []

        def work(connection: Connection) -> list[Parcel]:
            now = now_ns(connection)
            found = self._fair.pick(connection, most, now, window=window)
            if not found:
                return []
            these = [one.id for one in found]
            values = {"these": these, "moment": now, "least": round(again * 1e9)}
            rows = connection.execute(_SEND, values).all()
            return [
                Parcel(
                    call_id=row.call_id,
                    tenant=row.tenant_id,
                    key=row.order_key or row.call_id,
                    message=bytes(row.message),
                )
                for row in sorted(rows, key=lambda row: row.id)
            ]

        return await self._database.write(work, tenant=HOUSE)

    async def unsent(self, call_ids: Collection[str]) -> None:
        """Unless somebody has it by now."""
        await self._database.write(
            lambda connection: connection.execute(
                queue.update()
                .where(queue.c.call_id.in_(list(call_ids)), queue.c.state == "sent")
                .values(state="waiting", due_ns=0)
            ),
            tenant=HOUSE,
        )

    async def known(self, call_ids: Collection[str]) -> Mapping[str, str]:
        """Of whichever tenant."""
        question = sa.select(queue.c.call_id, queue.c.tenant_id).where(
            queue.c.call_id.in_(list(call_ids))
        )
        rows = await self._database.read(
            lambda connection: connection.execute(question).all(), tenant=HOUSE
        )
        return {row.call_id: row.tenant_id for row in rows}

    async def adopt(self, items: Sequence[Item]) -> None:
        """One insert; what conflicts stays."""

        def work(connection: Connection) -> None:
            now = now_ns(connection)
            upsert(connection, queue, [waiting_row(item, now) for item in items], by=_KEY)

        await self._database.write(work, tenant=HOUSE)

    async def bury(self, poison: Sequence[Poison]) -> None:
        """As rows of no tenant and no tool."""

        def work(connection: Connection) -> None:
            now = now_ns(connection)
            some = _unreadable.limit(MOST_WHOLE).subquery()
            there = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
            rows = [
                {
                    "call_id": storable(one.place),
                    "tenant_id": "",
                    "tool_name": "",
                    "agent_id": "",
                    "user_id": "",
                    "scope": "",
                    "order_key": "",
                    "state": "dead",
                    "message": one.content[:_MOST_KEPT] if number < MOST_WHOLE else b"",
                    "queued_ns": now,
                    "expires_ns": now,
                    "ended_ns": now,
                    "output": b"",
                    "why": storable(one.why[:_MOST_WHY]),
                }
                for number, one in enumerate(poison, there)
            ]
            upsert(connection, queue, rows, by=_KEY)

        await self._database.write(work, tenant=HOUSE)

    async def untold(self, most: int, *, after: float) -> Sequence[Untold]:
        """The oldest first."""
        if self._hold.why or not await self._database.ask(_ANY_UNTOLD, tenant=HOUSE):
            return []

        def work(connection: Connection) -> list[Untold]:
            before = now_ns(connection) - round(after * 1e9)
            rows = connection.execute(
                sa.select(queue)
                .where(sa.text(UNTOLD), queue.c.ended_ns <= before)
                .order_by(queue.c.id)
                .limit(most)
            )
            return [
                Untold(
                    call_id=row.call_id,
                    tenant=row.tenant_id,
                    tool=row.tool_name,
                    stage=Stage(row.state),
                    attempts=row.attempts,
                    ended_ns=row.ended_ns,
                    output=bytes(row.output),
                    message=bytes(row.message),
                    why=row.why,
                )
                for row in rows
            ]

        return await self._database.read(work, tenant=HOUSE)

    async def told(self, call_ids: Collection[str]) -> None:
        """One statement for all of them."""
        if self._server is not None:
            await self._server.run(_TELL, [list(call_ids), HOUSE])
            return
        await self._database.write(
            lambda connection: connection.execute(
                queue.update()
                .where(queue.c.call_id.in_(list(call_ids)), queue.c.state.in_(("done", "dead")))
                .values(told=1)
            ),
            tenant=HOUSE,
        )
