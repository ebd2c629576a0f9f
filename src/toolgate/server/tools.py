"""`/v1/tools`: what the caller may call, one of them, and why or why not."""

from typing import Any

import msgspec
import orjson

from toolgate.call import Turn
from toolgate.caller import NO_CONTEXT, Caller, Context
from toolgate.errors import InvalidRequest
from toolgate.gate import policy
from toolgate.gate.decision import Verdict
from toolgate.runtime import Runtime
from toolgate.server.context import flag, read_context, read_session
from toolgate.server.cursor import page
from toolgate.server.etag import kept, tag_of, with_tag
from toolgate.server.reply import Reply, reply
from toolgate.server.request import Request
from toolgate.spec.effect import Effect
from toolgate.spec.export import FORMATS, export, native
from toolgate.spec.json_object import parse_object
from toolgate.spec.tool import BUILT_IN, ToolSpec
from toolgate.tenancy.keys import Key, Role

_PAGE = 1_000
_MOST_WORDS = 16


async def list_tools(request: Request) -> Reply:
    """`GET /v1/tools?format=&q=&limit=&cursor=&session=&read_only=&no_web=`."""
    wanted = request.query.get("format", "toolgate")
    if wanted not in FORMATS:
        raise InvalidRequest(f"'format' must be one of: {', '.join(FORMATS)}.")
    words = set(request.query.get("q", "").lower().split())
    if len(words) > _MOST_WORDS:
        raise InvalidRequest(f"'q' takes up to {_MOST_WORDS} words; send fewer.")
    caller = _in_task(request.caller, request)
    specs = await request.gate.discover(caller)
    if words:
        specs = tuple(spec for spec in specs if _has(spec, words))
    shown, following = page(request, specs, _name, default=_PAGE, most=100_000)
    gate = request.gate.gate
    people = [spec.name for spec in shown if gate.needs_a_person(caller, spec)]
    lacking = {"unusable": unusable(request.gate, request.key)} if request.is_admin else {}
    # The fingerprints stand for all that a list shows of a tool: it need not be written to know.
    about = orjson.dumps([wanted, len(specs), following, people, lacking])
    tag = tag_of(about, "\n".join([spec.fingerprint for spec in shown]).encode())
    told = {"total": len(specs), "next": following, "people": people, **lacking}
    return kept(request, tag) or with_tag(reply({"tools": export(shown, wanted), **told}), tag)


def unusable(gate: Runtime, key: Key) -> dict[str, str]:
    """What is there and nobody can call, with the reason, for who looks after it.

    Built-in tools are no secret; of all others only an admin's key hears.
    """
    snapshot = gate.catalog.current
    return {
        name: snapshot.unusable[name]
        for name in sorted(snapshot.unusable)
        if key.role is Role.ADMIN or snapshot.specs[name].origin.where == BUILT_IN
    }


async def show_metadata(request: Request) -> dict[str, Any]:
    """`GET /v1/tools/{name}/metadata`: what a planner has to know before it calls it."""
    [name] = request.names
    caller = _in_task(request.caller, request)
    spec = await request.gate.gate.view(caller, name)
    first = (spec.category,) if spec.category else ()
    return {
        "name": spec.name,
        "effect": spec.effect,
        "requires_confirmation": request.gate.gate.needs_a_person(caller, spec),
        "is_irreversible": spec.effect is Effect.IRREVERSIBLE,
        "is_safe_to_retry": spec.effect.repeatable,
        "compensation_tool": "" if spec.compensation is None else spec.compensation.tool,
        "categories": list(dict.fromkeys((*first, *spec.categories))),
    }


async def list_unavailable(request: Request) -> dict[str, Any]:
    """`GET /v1/unavailable`: what the tenant has and the caller lacks, and why."""
    found = await request.gate.gate.unavailable(_in_task(request.caller, request))
    found.sort(key=_lacked)
    shown, following = page(request, found, _lacked)
    return {
        "unavailable": [
            {
                "name": spec.name,
                "description": spec.description,
                "phase": verdict.phase,
                "reason": _told(request, verdict),
                "definition": native(spec),
            }
            for spec, verdict in shown
        ],
        "next": following,
    }


def _told(request: Request, verdict: Verdict) -> str:
    """A policy's reasons are its operator's words: an agent is told which kind of rule it was.

    What its own task leaves out it has said itself.
    """
    is_own = verdict.rule.partition(":")[0] == "task"
    if verdict.phase != policy.PHASE or is_own or request.is_admin:
        return verdict.reason
    return "the policy refuses it"


def _name(spec: ToolSpec) -> str:
    return spec.name


def _lacked(one: tuple[ToolSpec, Verdict]) -> str:
    return one[0].name


def _has(spec: ToolSpec, words: set[str]) -> bool:
    text = f"{spec.name} {spec.description}".lower()
    return all(word in text for word in words)


async def show_tool(request: Request) -> dict[str, Any]:
    """`GET /v1/tools/{name}`."""
    [name] = request.names
    return native(await request.gate.gate.view(_in_task(request.caller, request), name))


async def explain_tool(request: Request) -> dict[str, Any]:
    """`GET /v1/tools/{name}/explain?agent=&user=&persona=&role=&session=&turn_group=&args=`: for an
    admin, of anybody; else of the key's own.
    """
    [name] = request.names
    about = _about(request) if request.is_admin else await _own(request, name)
    args = request.query.get("args")
    try:
        given = None if args is None else parse_object(args.encode())
    except ValueError as error:
        raise InvalidRequest(f"'args' {error}.") from None
    group = request.query.get("turn_group")
    found = await request.gate.explain(
        name,
        caller=_in_task(about, request),
        args=given,
        turn=Turn(group=group) if group else None,
    )
    if not request.is_admin:
        # What a tenant has used is for those who look after it.
        found = msgspec.structs.replace(found, budgets=())
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
    context = _context(request.query.get("context"))
    if read_only or no_web:
        context = msgspec.structs.replace(
            context,
            read_only=read_only or context.read_only,
            no_web=no_web or context.no_web,
        )
    if context is NO_CONTEXT and not session:
        return caller
    return msgspec.structs.replace(caller, context=context, session=session)


def _context(given: str | None) -> Context:
    try:
        return NO_CONTEXT if not given else read_context(parse_object(given.encode()))
    except ValueError as error:
        raise InvalidRequest(f"'context' {error}.") from None
