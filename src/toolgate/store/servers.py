"""How MCP servers, and what is agreed to of their tools, are put into their tables and read."""

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.errors import InvalidRequest
from toolgate.store import tables
from toolgate.store.upsert import upsert
from toolgate.tenancy.changes import PinTools, SetServer
from toolgate.tenancy.servers import Servers

# Says that a server was seen, also where nothing of it is agreed to.
_SEEN = ""


def set_server(change: SetServer, connection: Connection) -> None:
    """A server, or none any more."""
    table, pins = tables.mcp_servers, tables.mcp_pins
    if change.settings is None:
        connection.execute(table.delete().where(table.c.name == change.name))
        connection.execute(pins.delete().where(pins.c.server == change.name))
        return
    row = {
        "name": change.name,
        "settings": dict(change.settings),
        "updated_at": clock.utc_now(),
    }
    upsert(connection, table, [row], change=("settings", "updated_at"))


def pin_tools(change: PinTools, connection: Connection) -> None:
    """Definitions that are agreed to. Changes never cross: what is seen first is seen once."""
    column, now = tables.mcp_pins.c, clock.utc_now()
    seen = sa.select(column.server).where(column.server == change.server, column.tool == _SEEN)
    if change.first and connection.execute(seen).first() is not None:
        raise InvalidRequest(f"The server {change.server!r} was seen before; nothing was changed.")
    rows = [
        {
            "server": change.server,
            "tool": tool,
            "fingerprint": pin.fingerprint,
            "definition": orjson.dumps(dict(pin.definition)).decode(),
            "updated_at": now,
        }
        for tool, pin in change.tools.items()
    ]
    empty = {"fingerprint": "", "definition": "{}"}
    mark = {"server": change.server, "tool": _SEEN, "updated_at": now, **empty}
    upsert(
        connection,
        tables.mcp_pins,
        [mark, *rows],
        change=("fingerprint", "definition", "updated_at"),
    )


def read(connection: Connection) -> Servers:
    """Which there are, and the fingerprints that are agreed to."""
    server, pin = tables.mcp_servers.c, tables.mcp_pins.c
    added = connection.execute(sa.select(server.name, server.settings).order_by(server.name))
    pins: dict[str, dict[str, str]] = defaultdict(dict)
    asked = sa.select(pin.server, pin.tool, pin.fingerprint).order_by(pin.server, pin.tool)
    for name, tool, fingerprint in connection.execute(asked):
        known = pins[name]
        if tool != _SEEN:
            known[tool] = fingerprint
    return Servers(
        added=MappingProxyType({name: settings for name, settings in added}),  # noqa: C416  a Row is no pair
        pins=MappingProxyType(dict(pins)),
    )


def read_definitions(connection: Connection, server: str) -> Mapping[str, Mapping[str, Any]]:
    """What is agreed to of a server's tools."""
    column = tables.mcp_pins.c
    asked = sa.select(column.tool, column.definition).where(
        column.server == server, column.tool != _SEEN
    )
    return {tool: orjson.loads(text) for tool, text in connection.execute(asked)}
