"""`/v1/tools`: what the caller may call, one of them, and why or why not."""

from typing import Any

import msgspec

from toolgate.call import Caller
from toolgate.errors import InvalidRequest
from toolgate.server.request import Request
from toolgate.spec.export import FORMATS, export, native
from toolgate.spec.tool import ToolSpec

_PAGE = 1_000
_MOST_WORDS = 16


async def list_tools(request: Request) -> dict[str, Any]:
    """`GET /v1/tools?format=&q=&limit=`."""
    wanted = request.query.get("format", "toolgate")
    if wanted not in FORMATS:
        raise InvalidRequest(f"'format' must be one of: {', '.join(FORMATS)}.")
    words = set(request.query.get("q", "").lower().split())
    if len(words) > _MOST_WORDS:
        raise InvalidRequest(f"'q' takes up to {_MOST_WORDS} words; send fewer.")
    specs = await request.gate.discover(request.caller)
    if words:
        specs = tuple(spec for spec in specs if _has(spec, words))
    shown = specs[: request.number("limit", default=_PAGE, most=100_000)]
    return {"tools": export(shown, wanted), "total": len(specs)}


def _has(spec: ToolSpec, words: set[str]) -> bool:
    text = f"{spec.name} {spec.description}".lower()
    return all(word in text for word in words)


async def show_tool(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/tools/{name}`."""
    grant = await request.gate.gate.decide(request.caller, name)
    return native(grant.spec)


async def explain_tool(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/tools/{name}/explain?agent=`: the key's own; for an admin, any of its tenant."""
    about = await _about(request, name)
    return msgspec.to_builtins(request.gate.gate.explain(about, name))


async def _about(request: Request, name: str) -> Caller:
    own, asked = request.caller, request.query
    tenant = asked.get("tenant") or own.tenant
    if request.is_admin:
        if tenant != own.tenant:
            raise InvalidRequest(
                "A key speaks for its own tenant; leave 'tenant' out, or use a key of that one."
            )
        return Caller(tenant=tenant, agent=asked.get("agent", ""))
    # Why a tool is hidden is for an operator: to its agent it does not exist.
    await request.gate.gate.decide(own, name)
    if (tenant, asked.get("agent") or own.agent) != (own.tenant, own.agent):
        raise InvalidRequest("'tenant' and 'agent' are for an admin's key; leave them out.")
    return own
