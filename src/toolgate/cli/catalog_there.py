"""The tools of a server: all of them for an admin's key, its own for an agent's."""

from typing import Any

from toolgate.caller import Caller
from toolgate.cli.far import Server
from toolgate.cli.session import AGENT, TENANT
from toolgate.cli.whom import query_of
from toolgate.errors import PermissionDenied

_USUAL = Caller(tenant=TENANT, agent=AGENT)


async def listed_there(server: Server, whom: Caller | None, text: str) -> list[dict[str, str]]:
    """What there is, or what this caller may call."""
    asked = {} if whom is None else query_of(whom)
    try:
        return await server.each("tools", q=text, **asked)
    except PermissionDenied:
        if whom is not None:
            raise
    found = await server.ask("GET", "tools", q=text, limit=100_000)
    return [_row(one) for one in found["tools"]]


async def shown_there(server: Server, name: str) -> dict[str, Any]:
    """One tool, as far as the key may know it."""
    try:
        return await server.get("tools", name)
    except PermissionDenied:
        return await server.ask("GET", "tools", name)


async def exported_there(server: Server, caller: Caller, form: str) -> Any:
    """What the caller may call, in the words of a model's API."""
    try:
        return (await server.get("export", format=form, **query_of(caller)))["tools"]
    except PermissionDenied:
        # Whom commands mean unsaid is, to an agent's key, itself.
        if caller != _USUAL:
            raise
    return (await server.ask("GET", "tools", format=form, limit=100_000))["tools"]


def _row(tool: dict[str, Any]) -> dict[str, str]:
    texts = {field: str(tool.get(field) or "") for field in ("category", "effect", "description")}
    return {"name": str(tool["name"]), **texts, "state": "on", "reason": "", "origin": ""}
