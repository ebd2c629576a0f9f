"""Queued calls that no worker could run: to be looked at, tried again, or discarded."""

import logging
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.ledger.claims import Why
from toolgate.ledger.state import State
from toolgate.queue.queue import Kept
from toolgate.store import audit
from toolgate.store.database import HOUSE, Database
from toolgate.store.moment import now_ns
from toolgate.store.queue import KEPT, kept
from toolgate.store.records import DEAD, queue
from toolgate.store.releasing import give_up
from toolgate.store.text import storable

_log = logging.getLogger("toolgate.queue")
# So many at a time that nobody waits long for the writer in between.
_AT_ONCE = 1_000
# It is over, and its row stays: what a broker brings again must find it. What was told of a call is
# told on; what was none has nobody who waits for it.
_DISCARD = queue.update().values(
    state="done",
    message=b"",
    told=sa.case((queue.c.output == b"", 1), else_=queue.c.told),
)
_UNREADABLE = sa.and_(queue.c.tenant_id == "", sa.text(f"queue.{DEAD}"))


class TableDead:
    """The port over a database. `expires`: how many seconds one that is tried again may wait.

    `outbox`: events are put on record with what they tell of.
    """

    def __init__(self, database: Database, expires: float, *, outbox: bool = False) -> None:
        self._database = database
        self._outbox = outbox
        self._expires_ns = round(expires * 1e9)

    async def page(self, tenant: str, *, before: str = "", most: int = 50) -> Sequence[Kept]:
        """The newest first; of all tenants where none is named."""
        which: list[sa.ColumnElement[bool] | sa.TextClause] = [sa.text(f"queue.{DEAD}")]
        if tenant:
            which.append(queue.c.tenant_id == storable(tenant))
        if before:
            last = sa.select(queue.c.id).where(queue.c.call_id == storable(before))
            which.append(queue.c.id < last.scalar_subquery())
        question = sa.select(*KEPT).where(*which).order_by(queue.c.id.desc()).limit(most)
        return await self._database.read(
            lambda connection: [kept(row) for row in connection.execute(question)],
            tenant=tenant or HOUSE,
        )

    async def again(self, tenant: str, call_id: str, *, who: str, why: str) -> bool:
        """Its arguments are still there; the audit says who wanted it."""
        if not tenant:
            # What nobody could read is nobody's, and no call.
            return False
        which = sa.and_(
            queue.c.call_id == storable(call_id),
            queue.c.tenant_id == storable(tenant),
            queue.c.state == "dead",
            queue.c.message != b"",
        )

        def work(connection: Connection) -> bool:
            now = now_ns(connection)
            found = connection.execute(sa.select(queue).where(which).with_for_update()).all()
            if not found:
                return False
            # Behind all others: those of its order have gone on without it, and one may be at work.
            connection.execute(queue.delete().where(which))
            connection.execute(queue.insert(), [_anew(found[0], now, self._expires_ns)])
            details = {"was": found[0].why}
            audit.note(
                connection,
                kept(found[0]),
                now,
                change="queue_retried",
                details=details,
                who=who,
                why=why,
            )
            return True

        return await self._database.write(work, tenant=tenant)

    async def discard(self, tenant: str, call_id: str, *, who: str, why: str) -> bool:
        """The audit says who did not want it any more."""
        which = sa.and_(
            queue.c.call_id == storable(call_id),
            queue.c.tenant_id == storable(tenant),
            queue.c.state == "dead",
        )

        def work(connection: Connection) -> bool:
            found = connection.execute(sa.select(queue).where(which).with_for_update()).all()
            if not found:
                return False
            connection.execute(_DISCARD.where(queue.c.id == found[0].id))
            if tenant:
                # What was refused before it began does not begin any more.
                end = Why(State.FAILED, "undelivered", f"Discarded: {why}")
                give_up(connection, tenant, call_id, end, outbox=self._outbox)
            audit.note(
                connection,
                kept(found[0]),
                now_ns(connection),
                change="queue_discarded",
                details={"was": found[0].why},
                who=who,
                why=why,
            )
            return True

        is_done = await self._database.write(work, tenant=tenant or HOUSE)
        if is_done:
            _log.warning("%s is discarded by %s: %s", call_id, who, why)
        return is_done

    async def discard_unreadable(self, *, who: str, why: str) -> int:
        """Some at a time, each time with a record of its own."""

        def work(connection: Connection) -> int:
            some = sa.select(queue).where(_UNREADABLE).order_by(queue.c.id).limit(_AT_ONCE)
            found = connection.execute(some.with_for_update()).all()
            if not found:
                return 0
            connection.execute(_DISCARD.where(queue.c.id.in_([row.id for row in found])))
            audit.note(
                connection,
                kept(found[0]),
                now_ns(connection),
                change="queue_discarded",
                details={"unreadable": str(len(found)), "last": found[-1].call_id},
                who=who,
                why=why,
            )
            return len(found)

        total = 0
        while found := await self._database.write(work, tenant=HOUSE):
            total += found
        if total:
            _log.warning("%d unreadable messages are discarded by %s: %s", total, who, why)
        return total


def _anew(row: Any, now: int, expires_ns: int) -> dict[str, Any]:
    """As it was put, from now on; what an earlier attempt holds is worth nothing to it."""
    return {
        **{
            column: getattr(row, column)
            for column in (
                "call_id",
                "tenant_id",
                "tool_name",
                "agent_id",
                "user_id",
                "scope",
                "order_key",
                "message",
                "fence",
            )
        },
        "state": "waiting",
        "queued_ns": now,
        "expires_ns": now + expires_ns,
        "output": b"",
    }
