"""`/v1/tools`: what the caller may call, one of them, and why or why not."""

from typing import Any

import msgspec

from toolgate.call import Caller
from toolgate.errors import InvalidRequest, ToolNotFound
from toolgate.server.request import Request
from toolgate.spec.export import FORMATS, export, native

_PAGE = 1_000


async def list_tools(request: Request) -> dict[str, Any]:
    """`GET /v1/tools?format=&q=&limit=`."""
    wanted = request.query.get("format", "toolgate")
    if wanted not in FORMATS:
        raise InvalidRequest(f"'format' must be one of: {', '.join(FORMATS)}.")
    specs = await request.gate.discover(request.caller)
    words = request.query.get("q", "").lower().split()
    if words:
        specs = tuple(
            spec
            for spec in specs
            if all(word in f"{spec.name} {spec.description}".lower() for word in words)
        )
    shown = specs[: request.number("limit", default=_PAGE, most=100_000)]
    return {"tools": export(shown, wanted), "total": len(specs)}


async def show_tool(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/tools/{name}`."""
    grant = await request.gate.gate.decide(request.caller, name)
    return native(grant.spec)


async def explain_tool(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/tools/{name}/explain`: for an operator's eyes, for any agent."""
    if not request.is_admin:
        raise ToolNotFound(name)
    tenant = request.query.get("tenant") or request.caller.tenant
    about = Caller(tenant=tenant, agent=request.query.get("agent", ""))
    return msgspec.to_builtins(request.gate.gate.explain(about, name))
