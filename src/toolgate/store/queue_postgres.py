# ruff: noqa: S608
"""Queued calls on PostgreSQL: what happens to every call is one statement, and one way there."""

from collections.abc import Sequence
from typing import Any

from toolgate.queue.queue import Ended, Item, Taken
from toolgate.store.database import HOUSE, Database, Statements
from toolgate.store.hold import Hold
from toolgate.store.queue import TableQueue, waiting_row
from toolgate.store.text import storable
from toolgate.store.whose import gate

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint"
_NEW = {
    "call_id": "text",
    "tenant_id": "text",
    "tool_name": "text",
    "agent_id": "text",
    "user_id": "text",
    "scope": "text",
    "order_key": "text",
    "message": "bytea",
    "expires_ns": "bigint",
}
_GIVEN = ", ".join(f"${at}::{type_}[]" for at, type_ in enumerate(_NEW.values(), 1))
# In the order in which they were given: calls of one key run in that of their numbers.
_PUT = (
    f"INSERT INTO queue ({', '.join(_NEW)}, state, queued_ns, output) "
    f"SELECT {', '.join(_NEW)}, 'waiting', {_NOW}, ''::bytea "
    f"FROM unnest({_GIVEN}) WITH ORDINALITY AS new({', '.join(_NEW)}, place) "
    f"WHERE {gate(len(_NEW) + 1)} ORDER BY place ON CONFLICT (call_id) DO NOTHING"
)
# Of those that run in no order.
_CLAIM = (
    "UPDATE queue SET state = 'taken', attempts = attempts + 1, fence = fence + 1, "
    f"due_ns = {_NOW} + $2::bigint WHERE call_id = ANY($1::text[]) AND {gate(3)} "
    f"AND (state = 'sent' OR (state IN ('waiting', 'taken') AND due_ns <= {_NOW})) "
    "AND order_key = '' "
    "RETURNING id, call_id, tenant_id, tool_name, message, fence, attempts, "
    f"expires_ns <= {_NOW}"
)
_END = (
    "UPDATE queue SET state = ended.state, output = ended.output, why = ended.why, "
    # What is dead can be tried again.
    "message = CASE WHEN ended.why <> '' THEN queue.message ELSE ''::bytea END, "
    f"attempts = queue.attempts - ended.untried, ended_ns = {_NOW}, told = $7::int "
    "FROM unnest($1::text[], $2::int[], $3::text[], $4::bytea[], $5::text[], $6::int[]) "
    "AS ended(call_id, fence, state, output, why, untried) "
    "WHERE queue.call_id = ended.call_id AND queue.fence = ended.fence "
    f"AND queue.state = 'taken' AND {gate(8)} RETURNING queue.call_id, queue.fence"
)
_ENDED = (
    "SELECT call_id, fence FROM queue WHERE call_id = ANY(string_to_array($1, ' ')) "
    "AND state IN ('done', 'dead')"
)


def queue_at(database: Database, *, tells: bool, hold: Hold | None = None) -> TableQueue:
    """The queue in a database, as it is quickest there."""
    if isinstance(database, Statements):
        return PostgresQueue(database, tells=tells, hold=hold)
    return TableQueue(database, tells=tells, hold=hold)


class PostgresQueue(TableQueue):
    """As the table on any server, with the statements of each call by hand."""

    def __init__(
        self, database: Statements, *, tells: bool = False, hold: Hold | None = None
    ) -> None:
        super().__init__(database, tells=tells, hold=hold)
        self._server = database

    async def claim(self, call_ids: Sequence[str], lease: float) -> Sequence[Taken]:
        """Where the answer was lost, they are nobody's until their lease is over."""
        if not call_ids or self._hold.why:
            return []
        given = [list(call_ids), round(lease * 1e9), HOUSE]
        rows, _again = await self._server.run(_CLAIM, given)
        found = [_taken(row) for row in sorted(rows, key=lambda row: row[0])]
        # Of an order one is taken at a time, and one statement alone cannot see to that.
        own = {one.call_id for one in found}
        left = [call_id for call_id in dict.fromkeys(call_ids) if call_id not in own]
        return [*found, *await super().claim(left, lease)]

    async def _put(self, items: list[Item]) -> Sequence[None]:
        rows = [waiting_row(item, 0) for item in items]
        columns = [[row[name] for row in rows] for name in _NEW]
        await self._server.run(_PUT, [*columns, HOUSE])
        return [None] * len(items)

    async def _end(self, ends: list[Ended]) -> Sequence[bool]:
        given = [
            [one.call_id for one in ends],
            [one.fence for one in ends],
            ["dead" if one.why else "done" for one in ends],
            [one.output for one in ends],
            [storable(one.why) for one in ends],
            [int(not one.counts) for one in ends],
            self._told,
            HOUSE,
        ]
        rows, again = await self._server.run(_END, given)
        held = {(call_id, fence) for call_id, fence in rows}
        if again and len(held) < len(ends):
            # The first time may have ended them: nobody else has their fence.
            words = (" ".join(one.call_id for one in ends),)
            found = await self._server.ask(_ENDED, words, tenant=HOUSE)
            held |= {(call_id, fence) for call_id, fence in found}
        return [(one.call_id, one.fence) in held for one in ends]


def _taken(row: Sequence[Any]) -> Taken:
    _id, call_id, tenant, tool, message, fence, attempts, late = row
    return Taken(
        call_id=call_id,
        tenant=tenant,
        tool=tool,
        message=bytes(message),
        fence=fence,
        attempts=attempts,
        late=late,
    )
