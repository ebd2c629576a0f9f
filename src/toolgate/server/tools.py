"""`/v1/tools`: what the caller may call, one of them, and why or why not."""

from typing import Any

import msgspec

from toolgate.call import Caller, Context
from toolgate.errors import InvalidRequest
from toolgate.server.context import flag, read_session
from toolgate.server.request import Request
from toolgate.spec.export import FORMATS, export, native
from toolgate.spec.json_object import parse_object
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.keys import Role

_PAGE = 1_000
_MOST_WORDS = 16
# An agent's session is its own, whatever it is called.
_TASK = ("session", "read_only", "no_web")


async def list_tools(request: Request) -> dict[str, Any]:
    """`GET /v1/tools?format=&q=&limit=&session=&read_only=&no_web=`."""
    request.takes("format", "q", "limit", *_TASK)
    wanted = request.query.get("format", "toolgate")
    if wanted not in FORMATS:
        raise InvalidRequest(f"'format' must be one of: {', '.join(FORMATS)}.")
    words = set(request.query.get("q", "").lower().split())
    if len(words) > _MOST_WORDS:
        raise InvalidRequest(f"'q' takes up to {_MOST_WORDS} words; send fewer.")
    specs = await request.gate.discover(_in_task(request.caller, request))
    if words:
        specs = tuple(spec for spec in specs if _has(spec, words))
    shown = specs[: request.number("limit", default=_PAGE, most=100_000)]
    return {"tools": export(shown, wanted), "total": len(specs)}


def _has(spec: ToolSpec, words: set[str]) -> bool:
    text = f"{spec.name} {spec.description}".lower()
    return all(word in text for word in words)


async def show_tool(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/tools/{name}`."""
    request.takes(*_TASK)
    return native(await request.gate.gate.view(_in_task(request.caller, request), name))


async def explain_tool(request: Request, name: str) -> dict[str, Any]:
    """`GET /v1/tools/{name}/explain?agent=&user=&persona=&role=&session=&args=`: for an admin, of
    anybody; else of the key's own.
    """
    request.takes("tenant", "agent", "user", "persona", "role", "args", *_TASK)
    about = _about(request) if request.is_admin else await _own(request, name)
    args = request.query.get("args")
    try:
        given = None if args is None else parse_object(args.encode())
    except ValueError as error:
        raise InvalidRequest(f"'args' {error}.") from None
    found = await request.gate.explain(name, caller=_in_task(about, request), args=given)
    return msgspec.to_builtins(found) | {"remedies": found.remedies}


def _about(request: Request) -> Caller:
    """Whomever an admin asks about, within what its key reaches."""
    own, asked = request.caller, request.query
    tenant = asked.get("tenant") or own.tenant
    if tenant != own.tenant and request.key.role is not Role.ADMIN:
        raise InvalidRequest(
            "A key speaks for its own tenant; leave 'tenant' out, or use a key of that one."
        )
    return Caller(
        tenant=tenant,
        agent=asked.get("agent", ""),
        user=asked.get("user", ""),
        persona=asked.get("persona", ""),
        roles=_listed(asked.get("role", "")),
    )


async def _own(request: Request, name: str) -> Caller:
    """The caller that the key stands for, who may ask about what it sees and nobody else."""
    own = request.caller
    # Why a tool is hidden is for an operator: to its agent it does not exist.
    await request.gate.gate.view(own, name)
    is_known = {
        "tenant": own.tenant,
        "agent": own.agent,
        "user": own.user,
        "persona": own.persona,
        "role": ",".join(own.roles),
    }
    for field, value in is_known.items():
        if request.query.get(field, "") not in {"", value}:
            raise InvalidRequest(f"{field!r} is for an admin's key; leave it out.")
    return own


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def _in_task(caller: Caller, request: Request) -> Caller:
    """The caller in the task and session that the query describes, if it describes one."""
    read_only, no_web = (flag(name, request.query.get(name)) for name in ("read_only", "no_web"))
    session = read_session(request.query.get("session"))
    if not read_only and not no_web and not session:
        return caller
    context = Context(read_only=read_only, no_web=no_web)
    return msgspec.structs.replace(caller, context=context, session=session)
