"""Which calls somebody has to look after, and in which order: the question in SQL."""

from collections.abc import Collection

import sqlalchemy as sa

from toolgate.ledger.entry import Entry
from toolgate.ledger.machine import Recovery
from toolgate.ledger.state import State
from toolgate.store.records import OPEN_STATES
from toolgate.store.records import tool_execution_log as log
from toolgate.store.text import storable

# The last word of a scope is its kind; what stands before it says whose it is.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def lost_rows(now: int, but: Collection[str], busy: Collection[str]) -> sa.Select[tuple[object]]:
    """Open rows whose lease is over: tenants by turns, and of what is taken back the latest."""
    turn = sa.func.row_number().over(
        partition_by=log.c.tenant_id,
        order_by=(log.c.lease_ns, log.c.created_ns.desc(), log.c.call_id),
    )
    placed = (
        sa.select(log.c.call_id, turn.label("turn"))
        # In the words of the index, or SQLite would look at every row.
        .where(sa.text(OPEN_STATES), log.c.lease_ns <= now, ~_comes_later())
    )
    if but:
        placed = placed.where(log.c.call_id.not_in(sorted(map(storable, but))))
    if busy:
        placed = placed.where(log.c.tenant_id.not_in(sorted(map(storable, busy))))
    first = placed.subquery()
    return (
        sa.select(log)
        .join(first, log.c.call_id == first.c.call_id)
        .order_by(first.c.turn, log.c.lease_ns, log.c.created_ns.desc(), log.c.call_id)
    )


def unsure_rows(behind: Entry | None) -> sa.Select[tuple[object]]:
    """Unknown rows that a probe can tell about, the newest first."""
    asked = sa.select(log).where(
        # In the words of the index.
        sa.text("state = 'unknown'"),
        log.c.recovery == Recovery.PROBED.value,
    )
    if behind is not None:
        ended = log.c.ended_ns
        same = (ended == behind.ended_ns) & (log.c.call_id < storable(behind.call_id))
        asked = asked.where((ended < behind.ended_ns) | same)
    return asked.order_by(log.c.ended_ns.desc(), log.c.call_id.desc())


def _comes_later() -> sa.ColumnElement[bool]:
    """Whether another effect of the same turn group, or chain, is to be taken back before it."""
    other = log.alias("other")
    # As it stands in the indexes.
    empty = sa.literal_column("''", sa.Text)
    in_turn = (other.c.turn_group == log.c.turn_group) & (other.c.turn_group != empty)
    in_chain = (other.c.chain_id == log.c.chain_id) & (other.c.chain_id != empty)
    compensating = State.COMPENSATING.value

    def owner(table: sa.FromClause) -> sa.ColumnElement[str]:
        return sa.func.rtrim(table.c.once_scope, _LETTERS)

    def found(together: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
        return sa.exists().where(
            other.c.tenant_id == log.c.tenant_id,
            together,
            other.c.created_ns > log.c.created_ns,
            other.c.state == compensating,
            owner(other) == owner(log),
        )

    # Two questions, so that each has its index.
    later = found(in_turn) | ((log.c.turn_group == empty) & found(in_chain))
    return (log.c.state == compensating) & later
