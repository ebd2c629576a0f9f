"""How much is queued, counted by the indices of what is not over: what is done is not looked at."""

from collections import Counter

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.queue.queue import Depth
from toolgate.store.moment import now_ns
from toolgate.store.records import AWAY, DEAD, WAITS, queue

# A table that is too long is not counted to its end.
_MOST_COUNTED = 100_000
_by_tenant = sa.select(queue.c.tenant_id, sa.func.count().label("many")).group_by(queue.c.tenant_id)
# Built once: to build one takes longer than to run it.
_HELD = _by_tenant.where(sa.text(AWAY))
# One statement: a call that moves on meanwhile is counted once.
_each = sa.union_all(_by_tenant.where(sa.text(WAITS)), _HELD).subquery()
_OPEN = sa.select(_each.c.tenant_id, sa.func.sum(_each.c.many).label("many")).group_by(
    _each.c.tenant_id
)
_is_sent = queue.c.state == sa.literal_column("'sent'")
# Taken by a worker that has not been heard of for its lease.
_is_lapsed = sa.and_(~_is_sent, queue.c.due_ns < sa.bindparam("moment", type_=sa.BigInteger))
_away = sa.select(
    sa.func.count().label("all"),
    sa.func.count().filter(_is_sent).label("sent"),
    sa.func.count().filter(_is_lapsed).label("lapsed"),
    sa.func.min(queue.c.queued_ns).label("oldest_ns"),
    sa.func.min(queue.c.queued_ns).filter(sa.or_(_is_sent, _is_lapsed)).label("unheld_ns"),
).where(sa.text(AWAY))
# Of each tenant the first: one look into the index, however many rows it has.
_OLDEST = sa.text(
    f"""
    WITH RECURSIVE found(tenant) AS (
        SELECT (SELECT min(tenant_id) FROM queue WHERE {WAITS})
        UNION ALL
        SELECT (SELECT min(tenant_id) FROM queue WHERE {WAITS} AND tenant_id > found.tenant)
        FROM found WHERE found.tenant IS NOT NULL
    )
    SELECT min((
        SELECT queued_ns FROM queue WHERE {WAITS} AND tenant_id = found.tenant ORDER BY id LIMIT 1
    )) FROM found WHERE tenant IS NOT NULL
    """  # noqa: S608  no value stands in it
)


def held_by_tenant(connection: Connection) -> Counter[str]:
    """How many of each are with a broker or a worker."""
    return Counter({row.tenant_id: row.many for row in connection.execute(_HELD)})


def open_by_tenant(connection: Connection) -> Counter[str]:
    """How many of each are not over."""
    return Counter({row.tenant_id: int(row.many) for row in connection.execute(_OPEN)})


def depth(connection: Connection) -> Depth:
    """What waits and what is dead is counted up to a bound."""
    away = connection.execute(_away, {"moment": now_ns(connection)}).one()
    waits_ns: int | None = connection.execute(_OLDEST).scalar_one()
    return Depth(
        waiting=_count(connection, WAITS),
        sent=away.sent,
        taken=away.all - away.sent,
        dead=_count(connection, DEAD),
        lapsed=away.lapsed,
        oldest_ns=_first(waits_ns, away.oldest_ns),
        unheld_ns=_first(waits_ns, away.unheld_ns),
    )


def _first(*since_ns: int | None) -> int:
    return min((one for one in since_ns if one), default=0)


def _count(connection: Connection, which: str) -> int:
    some = sa.select(queue.c.id).where(sa.text(which)).limit(_MOST_COUNTED).subquery()
    return connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
