"""Which queued calls come next: of each tenant in turn, and of one order one at a time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.queue.queue import NOBODY
from toolgate.store.backlog import LONG, Backlog, Next
from toolgate.store.depth import held_by_tenant
from toolgate.store.first import FIRST, FIRST_SENT
from toolgate.store.records import AWAY, WAITS, queue

# Of so many tenants some are looked for at a time; the others come next.
_MOST_TENANTS = 32
# Locks by an order's name are of this kind, and of no other.
_ORDERS = 704_651
# One look into the index a tenant, however many rows each of them has.
_FOUND = f"""
    WITH RECURSIVE found(tenant) AS (
        SELECT (SELECT min(tenant_id) FROM queue WHERE {WAITS} AND tenant_id > {{after}})
        UNION ALL
        SELECT (SELECT min(tenant_id) FROM queue WHERE {WAITS} AND tenant_id > found.tenant)
        FROM found WHERE found.tenant IS NOT NULL
    )
    """  # noqa: S608  no value stands in it
_SOME = f"FROM found WHERE tenant IS NOT NULL LIMIT {_MOST_TENANTS}"
_TENANTS = sa.text(
    f"""{_FOUND.format(after=":after")}
    SELECT tenant, (
        SELECT count(*) FROM (
            SELECT id FROM queue WHERE {WAITS} AND tenant_id BETWEEN found.tenant AND found.tenant
            ORDER BY tenant_id, id LIMIT {LONG}
        ) AS counted
    ) AS many {_SOME}
    """  # noqa: S608  nor here
)
# Some of those of whom something waits.
WAITERS = _FOUND.format(after="''") + f"SELECT tenant {_SOME}"
# What a broker has is bounded, and found by the index of what is away.
SENDERS = f"SELECT DISTINCT tenant_id FROM queue WHERE {AWAY} AND state = 'sent'"  # noqa: S608  nor here
_number = sa.func.hashtext(queue.c.order_key)
_FREE = sa.select(queue.c.id, sa.func.pg_try_advisory_xact_lock(_ORDERS, _number)).where(
    queue.c.id.in_(sa.bindparam("these", expanding=True))
)
_numbers = (
    sa.select(_number.label("number"))
    .where(queue.c.call_id.in_(sa.bindparam("these", expanding=True)), queue.c.order_key != "")
    .distinct()
    # Whoever waits for several waits in the same order as everyone.
    .order_by("number")
    .subquery()
)
_WAIT = sa.select(sa.func.pg_advisory_xact_lock(_ORDERS, _numbers.c.number))


class Fair:
    """Remembers whose turn it was."""

    def __init__(self) -> None:
        self._after = ""
        self._backlog = Backlog()

    def pick(
        self,
        connection: Connection,
        most: int,
        now_ns: int,
        *,
        window: int = 0,
        but: Collection[str] = NOBODY,
    ) -> Sequence[Next]:
        """The rows to take, locked; on PostgreSQL, what another node is taking is left to it.

        `window`: so many of a tenant may be under way. `but`: of these tenants none, who are fewer
        than are looked for at a time.
        """
        waiting = self._tenants(connection)
        tenants = {tenant: many for tenant, many in waiting.items() if tenant not in but}
        held: Mapping[str, int] = held_by_tenant(connection) if window and tenants else {}

        def first(tenant: str, share: int) -> Sequence[Next]:
            if window:
                share = min(share, window - held.get(tenant, 0))
            if share <= 0:
                return []
            given = {"tenant": tenant, "moment": now_ns, "most": share}

            def ask(question: sa.Executable, **more: Any) -> Sequence[Any]:
                return connection.execute(question, {**given, **more}).all()

            if tenants[tenant] >= LONG:
                return self._backlog.first(tenant, share, ask)
            self._backlog.forget(tenant)
            return [Next(*row) for row in ask(FIRST)]

        return self._turns(list(tenants), most, first)

    def sent(self, connection: Connection, most: int, tenants: Collection[str]) -> Sequence[Next]:
        """The same of what a broker has, and of these tenants."""
        turns = sorted(tenants, key=lambda tenant: (tenant <= self._after, tenant))

        def first(tenant: str, share: int) -> Sequence[Next]:
            rows = connection.execute(FIRST_SENT, {"tenant": tenant, "most": share})
            return [Next(*row) for row in rows]

        return self._turns(turns[:_MOST_TENANTS], most, first)

    def _turns(
        self, tenants: Sequence[str], most: int, first: Callable[[str, int], Sequence[Next]]
    ) -> Sequence[Next]:
        found: list[Next] = []
        for position, tenant in enumerate(tenants):
            if len(found) >= most:
                break
            # Each of those that are left gets its part of what is left, and one at the least.
            found += first(tenant, -(-(most - len(found)) // (len(tenants) - position)))
            self._after = tenant
        return found

    def _tenants(self, connection: Connection) -> Mapping[str, int]:
        """In turn, with how many calls of each wait, as far as that matters."""
        found = _counted(connection, self._after)
        if len(found) < _MOST_TENANTS and self._after:
            # Those that are there twice keep their turn.
            found = {**found, **_counted(connection, "")}
        return dict(list(found.items())[:_MOST_TENANTS])


def _counted(connection: Connection, after: str) -> dict[str, int]:
    rows = connection.execute(_TENANTS, {"after": after})
    return {row.tenant: row.many for row in rows}


def free(connection: Connection, found: Sequence[Next]) -> list[int]:
    """The numbers of those whose order nobody else is taking from, until this transaction is over.

    Whether they are first is to be asked after this: only then does it stay true.
    """
    ordered = [one.id for one in found if one.order]
    if not ordered or connection.dialect.name != "postgresql":
        return [one.id for one in found]
    # Without waiting: their rows are locked already, and others may wait for those.
    busy = {id_ for id_, is_free in connection.execute(_FREE, {"these": ordered}) if not is_free}
    return [one.id for one in found if one.id not in busy]


def wait(connection: Connection, call_ids: Sequence[str]) -> None:
    """Until nobody else is taking from the orders of these calls: as `free`, before any is locked.

    What a broker brought is not brought again soon.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_WAIT, {"these": list(call_ids)})
