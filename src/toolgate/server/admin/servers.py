"""`/v1/admin/servers`: MCP servers, and what of their tools is agreed to.

To try a server is to start its program, or to send it something: that takes the same right as to
keep it, and only one that is kept is ever reached.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from toolgate.errors import InvalidRequest
from toolgate.server.admin.desk import Desk, Signed
from toolgate.server.fields import Nothing
from toolgate.settings.outward import McpServer, is_server_name

_MOST_TOLD = 5


class NewServer(Signed):
    """A server, as in the settings: a command or a url."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    secrets_env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    url: str = ""
    headers_env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    timeout: float = 30
    prefix: str | None = None
    trust: str = "none"
    pin: bool = True
    overlay: str = ""
    when_down: str = "mark"
    elicitation: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class Approved(Signed, kw_only=True):
    """Tools by the server's own names, each with the fingerprint that was looked at."""

    tools: dict[str, str]


async def list_servers(desk: Desk, _: Nothing) -> Any:
    """`GET servers`: those of the settings, and those that were added; how each is doing."""
    return {"servers": desk.gate.servers.rows()}


async def show_server(desk: Desk, _: Nothing) -> Any:
    """`GET servers/{name}`: how it is doing, and the last lines that its program wrote."""
    [name] = desk.names
    return await desk.gate.servers.shown(name)


async def put_server(desk: Desk, given: NewServer) -> Any:
    """`PUT servers/{name}` `{command | url, …}`: it is used from now on, on every node."""
    [name] = desk.names
    said = {field: getattr(given, field) for field in given.__struct_fields__ if field != "why"}
    await desk.gate.servers.add(desk.tenancy, name, checked(name, said))
    return {"name": name}


async def remove_server(desk: Desk, _: Signed) -> Any:
    """`DELETE servers/{name}`: with what was agreed to of its tools."""
    [name] = desk.names
    await desk.gate.servers.remove(desk.tenancy, name)
    return {"name": name, "removed": True}


async def try_server(desk: Desk, _: Signed) -> Any:
    """`POST servers/{name}/test`: ask one that is kept what it has, and say how it is."""
    [name] = desk.names
    return await desk.gate.servers.tested(name)


async def show_waiting(desk: Desk, _: Nothing) -> Any:
    """`GET servers/{name}/diff`: what waits for an operator, and how it differs."""
    [name] = desk.names
    return {"name": name, "tools": await desk.gate.servers.waiting(name)}


async def approve_tools(desk: Desk, given: Approved) -> Any:
    """`POST servers/{name}/approve` `{tools: {NAME: FINGERPRINT}}`: agree to what was shown."""
    [name] = desk.names
    if not given.tools:
        raise InvalidRequest("'tools' names what is agreed to, each with its fingerprint.")
    approved = await desk.gate.servers.approve(desk.tenancy, name, given.tools)
    return {"name": name, "approved": approved}


def checked(name: str, given: Mapping[str, Any]) -> McpServer:
    """The server that was described, or `InvalidRequest` with what is wrong about it."""
    if not is_server_name(name):
        raise InvalidRequest(
            f"{name[:60]!r} names no server; use small letters, digits, _ and -, at most 40."
        )
    try:
        return McpServer.model_validate(dict(given))
    except ValidationError as error:
        wrong = [
            ": ".join((*map(str, one["loc"]), one["msg"].removeprefix("Value error, ")))
            for one in error.errors(include_url=False, include_input=False)
        ]
        listed = "; ".join(wrong[:_MOST_TOLD])
        raise InvalidRequest(f"This is no server: {listed}. Nothing was changed.") from None
