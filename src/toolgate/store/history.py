"""What sessions did, in a table that every node sees. Counts are exact."""

from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.call import Turn
from toolgate.caller import Caller
from toolgate.ledger.history import KEEP_NS, LAST_CALLS, Past, session_of, told, turn_of
from toolgate.ledger.state import State
from toolgate.spec.document import sha256
from toolgate.store.database import HOUSE, Database
from toolgate.store.prune import Prune
from toolgate.store.records import session_calls as table
from toolgate.store.text import storable
from toolgate.store.upsert import upsert

# PostgreSQL cannot index a name of any length.
_LONG = 256


class TableHistory:
    """The port for sessions over a database; the gate's `History` too."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._prune = Prune(database, table.c.created_ns, KEEP_NS)

    async def close(self) -> None:
        """Let what was begun come to its end."""
        await self._prune.close()

    async def begin(self, past: Past) -> None:
        """Durable when this returns. A call that is there already stays as it is."""
        tenant = _name(past.tenant)
        row = {
            "call_id": past.call_id,
            "tenant_id": tenant,
            "session_id": _name(past.session),
            "turn_group": _name(past.turn_group),
            "tool_name": storable(past.tool),
            "state": past.state.value,
            "args": storable(orjson.dumps(dict(past.args)).decode()),
            "created_ns": past.created_ns,
        }
        await self._database.write(
            lambda connection: upsert(connection, table, [row]), tenant=tenant
        )
        self._prune.soon()

    async def end(self, call_id: str, state: State) -> None:
        """Only what has started can end."""
        over = (
            table.update()
            .where(table.c.call_id == call_id, table.c.state == State.STARTED.value)
            .values(state=state.value)
        )

        def work(connection: Connection) -> None:
            connection.execute(over)

        await self._database.write(work, tenant=HOUSE)

    async def forget(self, call_id: str) -> None:
        """Only what has started can be given up."""
        given_up = table.delete().where(
            table.c.call_id == call_id, table.c.state == State.STARTED.value
        )

        def work(connection: Connection) -> None:
            connection.execute(given_up)

        await self._database.write(work, tenant=HOUSE)

    async def of(self, caller: Caller, turn: Turn | None) -> dict[str, Any]:
        """Both looked at in one moment."""
        tenant, since_ns = _name(caller.tenant), clock.unix_ns() - KEEP_NS
        session, group = _name(session_of(caller)), _name(turn_of(caller, turn))
        if not session and not group:
            return {"session": told((), ()), "turn": told((), ())}

        def work(connection: Connection) -> dict[str, Any]:
            return {
                "session": _SESSION.ask(connection, tenant, session, since_ns),
                "turn": _TURN.ask(connection, tenant, group, since_ns),
            }

        return await self._database.read(work, tenant=tenant)


class _Question:
    """What is asked about a session, or a turn; put into words once."""

    def __init__(self, column: sa.Column[str]) -> None:
        these = sa.and_(
            table.c.tenant_id == sa.bindparam("tenant"),
            column == sa.bindparam("name"),
            table.c.created_ns >= sa.bindparam("since_ns"),
        )
        self._counts = (
            sa.select(table.c.tool_name, table.c.state, sa.func.count())
            .where(these)
            .group_by(table.c.tool_name, table.c.state)
            .order_by(table.c.tool_name)
        )
        latest = (table.c.created_ns.desc(), table.c.call_id.desc())
        # Each tool's own: the calls of a busy one do not push out those of another.
        place = sa.func.row_number().over(partition_by=table.c.tool_name, order_by=latest)
        numbered = (
            sa.select(table.c.tool_name, table.c.args, place.label("place"))
            .where(these, table.c.state == State.SUCCEEDED.value)
            .subquery()
        )
        self._newest = (
            sa.select(numbered.c.tool_name, numbered.c.args)
            .where(numbered.c.place <= LAST_CALLS)
            .order_by(numbered.c.tool_name, numbered.c.place)
        )

    def ask(self, connection: Connection, tenant: str, name: str, since_ns: int) -> dict[str, Any]:
        """In the words for policies; a name that is empty has no calls."""
        if not name:
            return told((), ())
        given = {"tenant": tenant, "name": name, "since_ns": since_ns}
        counts = [
            (tool, State(state), number)
            for tool, state, number in connection.execute(self._counts, given)
        ]
        if all(state is not State.SUCCEEDED for _, state, _ in counts):
            return told(counts, ())
        newest = connection.execute(self._newest, given)
        return told(counts, ((tool, orjson.loads(args)) for tool, args in newest))


_SESSION, _TURN = _Question(table.c.session_id), _Question(table.c.turn_group)


def _name(text: str) -> str:
    """As it is compared; never read back."""
    text = storable(text)
    return text if len(text) <= _LONG else sha256(text.encode())
