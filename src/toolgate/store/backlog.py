"""A tenant's long backlog: what may go is found without passing over what waits behind others."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from toolgate.store.first import LOOSE, NEAR, THESE
from toolgate.store.records import OPEN_IN_ORDER, WAITS

# A backlog of so many is long.
LONG = 256
# So many orders are looked at in one statement, and in so many statements where none may go.
_KEYS = 256
_TIMES = 16
# One look into the index an order, however many calls of it wait. The first one from its name on is
# the first of it: asked for by its name alone, the index of all numbers might be read instead.
_HEADS = sa.text(
    f"""
    WITH RECURSIVE found(name, number) AS (
        SELECT (
            SELECT min(order_key) FROM queue
            WHERE {WAITS} AND tenant_id = :tenant AND order_key > :after
        ), 1
        UNION ALL
        SELECT (
            SELECT min(order_key) FROM queue
            WHERE {WAITS} AND tenant_id = :tenant AND order_key > found.name
        ), number + 1
        FROM found WHERE found.name IS NOT NULL AND number < {_KEYS}
    )
    SELECT name, (
        SELECT id FROM queue WHERE order_key >= found.name AND {OPEN_IN_ORDER.format(of="")}
        ORDER BY order_key, id LIMIT 1
    ) FROM found WHERE name IS NOT NULL
    """  # noqa: S608  no value stands in it
).bindparams(sa.bindparam("tenant", type_=sa.Text), sa.bindparam("after", type_=sa.Text))


class Next(NamedTuple):
    """A row to take."""

    id: int
    order: str


# The rows of a statement, with these values beside the tenant, the moment and how many.
Ask = Callable[..., Sequence[Any]]


class Backlog:
    """Remembers how far the orders of each tenant were looked at."""

    def __init__(self) -> None:
        self._after: dict[str, str] = {}

    def forget(self, tenant: str) -> None:
        """Its backlog is not long."""
        self._after.pop(tenant, None)

    def first(self, tenant: str, most: int, ask: Ask) -> Sequence[Next]:
        """The oldest that may go, where they are among the oldest; else any that may.

        Others have locked some, or many wait behind few: then what has no order is looked for by
        itself, and of each order its first.
        """
        found = {Next(*row) for row in ask(NEAR, near=max(LONG, 2 * most))}
        if len(found) < most:
            found.update(Next(*row) for row in ask(LOOSE))
            found |= self._heads(tenant, ask, is_urgent=not found)
        return sorted(found)[:most]

    def _heads(self, tenant: str, ask: Ask, *, is_urgent: bool) -> set[Next]:
        found = set[Next]()
        for _ in range(_TIMES if is_urgent else 1):
            heads = ask(_HEADS, after=self._after.pop(tenant, ""))
            if heads:
                found.update(Next(*row) for row in ask(THESE, these=[id_ for _, id_ in heads]))
            if len(heads) < _KEYS:
                # All of them, or the last: the next look begins anew.
                break
            self._after[tenant] = heads[-1][0]
            if found:
                break
        return found
