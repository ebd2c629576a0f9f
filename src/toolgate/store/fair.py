"""Which queued calls come next: of each tenant in turn, and of one order only the first."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store.records import WAITS, queue

# Of so many tenants some are looked for at a time; the others come next.
_MOST_TENANTS = 32
_earlier = queue.alias()
# Of those that share an order, none before it is still open.
is_first = sa.or_(
    queue.c.order_key == "",
    ~sa.exists().where(
        _earlier.c.order_key == queue.c.order_key,
        _earlier.c.id < queue.c.id,
        _earlier.c.order_key != "",
        _earlier.c.state.in_(("waiting", "sent", "taken")),
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
# Built once: to build one takes longer than to run it.
_HELD = (
    sa.select(queue.c.tenant_id, sa.func.count().label("many"))
    .where(queue.c.state.in_(("sent", "taken")))
    .group_by(queue.c.tenant_id)
)
_FIRST = (
    sa.select(queue.c.id)
    .where(
        queue.c.state == "waiting",
        queue.c.tenant_id == sa.bindparam("tenant"),
        queue.c.due_ns <= sa.bindparam("moment"),
        is_first,
    )
    .order_by(queue.c.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
    .with_for_update(skip_locked=True, of=queue)
)


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
    ) -> Sequence[int]:
        """The numbers of rows to take, locked. `window`: so many of a tenant may be under way."""
        tenants = self._tenants(connection)
        held: Mapping[str, int] = _held(connection) if window and tenants else {}
        found: list[int] = []
        for position, tenant in enumerate(tenants):
            if len(found) >= most:
                break
            # Each of those that are left gets its part of what is left, and one at the least.
            share = -(-(most - len(found)) // (len(tenants) - position))
            if window:
                share = min(share, window - held.get(tenant, 0))
            if share > 0:
                found += _first(connection, tenant, share, now_ns)
            self._after = tenant
        return found

    def _tenants(self, connection: Connection) -> list[str]:
        tenants = list(connection.execute(_TENANTS, {"after": self._after}).scalars())
        if len(tenants) < _MOST_TENANTS and self._after:
            known = set(tenants)
            begun = connection.execute(_TENANTS, {"after": ""}).scalars()
            tenants += [tenant for tenant in begun if tenant not in known]
        return tenants[:_MOST_TENANTS]


def _held(connection: Connection) -> Mapping[str, int]:
    return {row.tenant_id: row.many for row in connection.execute(_HELD)}


def _first(connection: Connection, tenant: str, most: int, now_ns: int) -> list[int]:
    """On PostgreSQL, what another node is taking is left to it."""
    values = {"tenant": tenant, "moment": now_ns, "most": most}
    return list(connection.execute(_FIRST, values).scalars())
