"""Queued calls that no worker could run: to be looked at, and to be tried again."""

from collections.abc import Sequence

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
        which = sa.and_(
            queue.c.call_id == storable(call_id),
            queue.c.tenant_id == storable(tenant),
            queue.c.state == "dead",
            queue.c.message != b"",
        )

        def work(connection: Connection) -> bool:
            now = now_ns(connection)
            found = connection.execute(sa.select(*KEPT).where(which).with_for_update()).all()
            if not found:
                return False
            connection.execute(
                queue.update()
                .where(which)
                .values(
                    state="waiting",
                    attempts=0,
                    due_ns=0,
                    ended_ns=0,
                    output=b"",
                    why="",
                    told=0,
                    expires_ns=now + self._expires_ns,
                )
            )
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
