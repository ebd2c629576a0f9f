"""Old rows go, now and then, a few at a time, behind everyone's back."""

import asyncio
import logging

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.store.database import HOUSE, Database

_log = logging.getLogger("toolgate.store")
_EVERY_NS = 3_600 * 1_000_000_000
# So few that nobody waits long for the writer in between.
_AT_ONCE = 500


class Prune:
    """Deletes the rows of a table whose moment, in nanoseconds, is older than `keep_ns`.

    `only`: of some rows, where the moment of the others means nothing.
    """

    def __init__(
        self,
        database: Database,
        moment: sa.Column[int],
        keep_ns: int,
        *,
        only: sa.ColumnElement[bool] | None = None,
    ) -> None:
        self._database = database
        self._moment = moment
        self._keep_ns = keep_ns
        self._only = sa.true() if only is None else only
        self._due_ns: int | None = None
        self._task: asyncio.Task[None] | None = None

    def soon(self) -> None:
        """Begin, if the last time is an hour ago; nobody waits for it."""
        now = clock.monotonic_ns()
        if self._due_ns is None or now >= self._due_ns:
            self._due_ns = now + _EVERY_NS
            self._task = asyncio.create_task(self._tried(), name="toolgate-prune")

    async def close(self) -> None:
        """Let what was begun come to its end."""
        if self._task is not None:
            await self._task

    async def now(self) -> None:
        """Delete all that is old enough."""
        before_ns = clock.unix_ns() - self._keep_ns
        moment = self._moment
        table = moment.table
        keys = list(sa.inspect(table).primary_key.columns)
        # On PostgreSQL, rows that another node writes or deletes are left to it.
        old = (
            sa.select(*keys)
            .where(moment < before_ns, self._only)
            .order_by(moment)
            .limit(_AT_ONCE)
            .with_for_update(skip_locked=True)
        )
        key = keys[0] if len(keys) == 1 else sa.tuple_(*keys)
        few = sa.delete(table).where(key.in_(old))

        def work(connection: Connection) -> int:
            return connection.execute(few).rowcount

        while await self._database.write(work, tenant=HOUSE) == _AT_ONCE:
            pass

    async def _tried(self) -> None:
        try:
            await self.now()
        except Exception as error:  # noqa: BLE001  the next hour may be a better one
            _log.warning("old rows could not be deleted (%s)", type(error).__name__)
