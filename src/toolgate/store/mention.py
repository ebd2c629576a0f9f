"""The catalog's row that flags, activations and restrictions of a tool hang on."""

from sqlalchemy import Connection

from toolgate import clock
from toolgate.store import tables
from toolgate.store.upsert import upsert


def mention(connection: Connection, tool: str) -> None:
    """Make sure there is one, also for a tool that is defined elsewhere."""
    now = clock.utc_now()
    row: dict[str, object] = {
        "name": tool,
        "params": {},
        "source": "elsewhere",
        "created_at": now,
        "updated_at": now,
    }
    upsert(connection, tables.tool_catalog, [row])
