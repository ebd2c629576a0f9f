"""Queued calls that no worker could run: to be looked at, and to be tried again."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.queue.queue import Kept
from toolgate.store import audit
from toolgate.store.database import HOUSE, Database
from toolgate.store.moment import now_ns
from toolgate.store.queue import KEPT, kept
from toolgate.store.records import queue
from toolgate.store.text import storable


class TableDead:
    """The port over a database. `expires`: how many seconds one that is tried again may wait."""

    def __init__(self, database: Database, expires: float) -> None:
        self._database = database
        self._expires_ns = round(expires * 1e9)

    async def page(self, tenant: str, *, before: str = "", most: int = 50) -> Sequence[Kept]:
        """The newest first; of all tenants where none is named."""
        which = [queue.c.state == "dead"]
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
