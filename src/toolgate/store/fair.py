"""Which queued calls come next: of each tenant in turn, and of one order one at a time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.queue.queue import NOBODY
from toolgate.store.depth import held_by_tenant
from toolgate.store.records import AWAY, OPEN_IN_ORDER, RUNS_IN_ORDER, WAITS, queue

# Of so many tenants some are looked for at a time; the others come next.
_MOST_TENANTS = 32
# Locks by an order's name are of this kind, and of no other.
_ORDERS = 704_651
_earlier = queue.alias("earlier")
_running = queue.alias("running")
# Of those that share an order, none before it is still open, and none runs: on PostgreSQL, numbers
# are given before rows come to light, so that one behind it may have been taken first.
is_first = sa.or_(
    queue.c.order_key == "",
    sa.and_(
        ~sa.exists(
            sa.select(_earlier.c.id).where(
                _earlier.c.order_key == queue.c.order_key,
                _earlier.c.id < queue.c.id,
                sa.text(OPEN_IN_ORDER.format(of="earlier.")),
            )
        ),
        ~sa.exists(
            sa.select(_running.c.id).where(
                _running.c.order_key == queue.c.order_key,
                _running.c.id != queue.c.id,
                sa.text(RUNS_IN_ORDER.format(of="running.")),
            )
        ),
    ),
)
# One look into the index a tenant, however many rows each of them has.
_TENANTS = sa.text(
    f"""
    WITH RECURSIVE found(tenant) AS (
        SELECT (SELECT min(tenant_id) FROM queue WHERE {WAITS} AND tenant_id > :after)
        UNION ALL
        SELECT (SELECT min(tenant_id) FROM queue WHERE {WAITS} AND tenant_id > found.tenant)
        FROM found WHERE found.tenant IS NOT NULL
    )
    SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT {_MOST_TENANTS}
    """  # noqa: S608  no value stands in it
)
# Some of those of whom something waits, in the same way.
WAITERS = _TENANTS.text.replace(":after", "''")
# Built once: to build one takes longer than to run it.
_FIRST = (
    sa.select(queue.c.id, queue.c.order_key)
    .where(
        sa.text(f"queue.{WAITS}"),
        queue.c.tenant_id == sa.bindparam("tenant"),
        queue.c.due_ns <= sa.bindparam("moment"),
        is_first,
    )
    .order_by(queue.c.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
    .with_for_update(skip_locked=True, of=queue)
)
# What a broker has is bounded, and found by the index of what is away.
SENDERS = f"SELECT DISTINCT tenant_id FROM queue WHERE {AWAY} AND state = 'sent'"  # noqa: S608  nor here
_FIRST_SENT = (
    sa.select(queue.c.id, queue.c.order_key)
    .where(
        sa.text(f"queue.{AWAY}"),
        queue.c.state == "sent",
        queue.c.tenant_id == sa.bindparam("tenant"),
        is_first,
    )
    # Not by the index of all numbers, which holds what is over.
    .order_by(queue.c.id + 0)
    .limit(sa.bindparam("most", type_=sa.Integer))
    .with_for_update(skip_locked=True, of=queue)
)
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


class Next(NamedTuple):
    """A row to take."""

    id: int
    order: str


class Fair:
    """Remembers whose turn it was."""

    def __init__(self) -> None:
        self._after = ""

    def pick(
        self,
        connection: Connection,
        most: int,
        now_ns: int,
        *,
        window: int = 0,
        but: Collection[str] = NOBODY,
    ) -> Sequence[Next]:
        """The rows to take, locked. `window`: so many of a tenant may be under way. `but`: of these
        tenants none, who are fewer than are looked for at a time.
        """
        tenants = [tenant for tenant in self._tenants(connection) if tenant not in but]
        held: Mapping[str, int] = held_by_tenant(connection) if window and tenants else {}

        def first(tenant: str, share: int) -> Sequence[Next]:
            if window:
                share = min(share, window - held.get(tenant, 0))
            values = {"tenant": tenant, "moment": now_ns, "most": share}
            return _rows(connection, _FIRST, values) if share > 0 else []

        return self._turns(tenants, most, first)

    def sent(self, connection: Connection, most: int, tenants: Collection[str]) -> Sequence[Next]:
        """The same of what a broker has, and of these tenants."""
        turns = sorted(tenants, key=lambda tenant: (tenant <= self._after, tenant))

        def first(tenant: str, share: int) -> Sequence[Next]:
            return _rows(connection, _FIRST_SENT, {"tenant": tenant, "most": share})

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

    def _tenants(self, connection: Connection) -> list[str]:
        tenants = list(connection.execute(_TENANTS, {"after": self._after}).scalars())
        if len(tenants) < _MOST_TENANTS and self._after:
            known = set(tenants)
            begun = connection.execute(_TENANTS, {"after": ""}).scalars()
            tenants += [tenant for tenant in begun if tenant not in known]
        return tenants[:_MOST_TENANTS]


def _rows(connection: Connection, question: sa.Executable, values: Mapping[str, Any]) -> list[Next]:
    """On PostgreSQL, what another node is taking is left to it."""
    return [Next(*row) for row in connection.execute(question, values)]


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
