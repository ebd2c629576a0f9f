"""Which queued call of an order may go, and rows of such calls, locked for whoever takes them."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from toolgate.store.records import AWAY, OPEN_IN_ORDER, RUNS_IN_ORDER, WAITS, queue

_earlier = queue.alias("earlier")
_running = queue.alias("running")
_near = queue.alias("near")
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
_tenant: sa.BindParameter[str] = sa.bindparam("tenant", type_=sa.Text)
_moment: sa.BindParameter[int] = sa.bindparam("moment", type_=sa.BigInteger)
_most: sa.BindParameter[int] = sa.bindparam("most", type_=sa.Integer)


def _rows(
    *which: sa.ColumnElement[bool] | sa.TextClause, by: Sequence[sa.ColumnElement[Any]]
) -> sa.Select[Any, Any]:
    return (
        sa.select(queue.c.id, queue.c.order_key)
        .where(queue.c.tenant_id == _tenant, *which)
        .order_by(*by)
        .limit(_most)
        .with_for_update(skip_locked=True, of=queue)
    )


def _waiting(
    *which: sa.ColumnElement[bool], by: Sequence[sa.ColumnElement[Any]] = (queue.c.id,)
) -> sa.Select[Any, Any]:
    return _rows(sa.text(f"queue.{WAITS}"), queue.c.due_ns <= _moment, *which, by=by)


# Where few of many rows wait, the index of all numbers must not be read, which holds what is over:
# a range of one value, with that value first in the order, leaves only the index that begins so.
_none: sa.ColumnElement[str] = sa.literal_column("''")
# Built once: to build one takes longer than to run it. All that wait, by the time they have waited:
FIRST = _waiting(is_first)
# of the oldest so many,
NEAR = _waiting(
    queue.c.id.in_(
        sa.select(_near.c.id)
        .where(sa.text(f"near.{WAITS}"), _near.c.tenant_id.between(_tenant, _tenant))
        .order_by(_near.c.tenant_id, _near.c.id)
        .limit(sa.bindparam("near", type_=sa.Integer))
    ),
    is_first,
)
# of those without an order,
LOOSE = _waiting(queue.c.order_key.between(_none, _none), by=(queue.c.order_key, queue.c.id))
# and of these.
THESE = _waiting(queue.c.id.in_(sa.bindparam("these", expanding=True)), is_first)
# What a broker has is bounded, and found by the index of what is away.
FIRST_SENT = _rows(
    sa.text(f"queue.{AWAY}"), queue.c.state == "sent", is_first, by=(queue.c.id + 0,)
)
