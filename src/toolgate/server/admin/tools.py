"""`/v1/admin/tools`: what there is, what somebody may call of it, and reading it all again."""

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any, NamedTuple

from toolgate.caller import Caller, Context
from toolgate.errors import InvalidRequest, ToolgateError, ToolNotFound
from toolgate.runtime import Runtime
from toolgate.server.admin.desk import Desk, OfTenant, Signed
from toolgate.server.context import flag
from toolgate.server.fields import Flag, Nothing, one_of
from toolgate.server.fields import whole as most_of
from toolgate.server.tools import unusable
from toolgate.spec.export import FORMATS, export
from toolgate.spec.tool import ToolSpec, definition
from toolgate.tenancy.names import nearest

# Comparing a name with every other one takes time; a hint is not worth more of it.
_MOST_COMPARED = 1_000


class NoSuchTool(ToolNotFound):
    """An operator may know what there is; a caller's refusal would not say."""

    def __init__(self, told: str) -> None:
        ToolgateError.__init__(self, told)


class State(NamedTuple):
    """On, off or unusable for everyone, or away for now, and the reason where there is one."""

    word: str
    reason: str = ""


class Whose(OfTenant):
    """Of whom: an agent of a tenant; without either, what there is."""

    agent: str = ""
    user: str = ""
    persona: str = ""
    role: str = ""
    session: str = ""
    read_only: Flag = "false"
    no_web: Flag = "false"


class SomeTools(Whose):
    """Only those whose name or description has these words."""

    q: str = ""
    limit: Annotated[str, most_of(10_000)] = ""
    cursor: str = ""


class Exported(Whose):
    """In whose words."""

    format: Annotated[str, one_of(*FORMATS)] = "openai"


async def list_tools(desk: Desk, given: SomeTools) -> Any:
    """`GET tools?tenant=&agent=&user=&persona=&role=&session=&read_only=&no_web=&q=&limit=`: what
    there is and how it stands, or what an agent may call.
    """
    found = await rows(desk.gate, _whom(desk, given), given.q)
    if not desk.has_all and not given.agent:
        # Who looks after a tenant sees what its agents lack, as who runs the house does.
        specs, words = desk.gate.catalog.current.specs, given.q.lower().split()
        names = unusable(desk.gate, desk.request.key)
        found += [_row(desk.gate, specs[name], None) for name in names if _has(specs[name], words)]
    shown, following = desk.page(sorted(found, key=_name), _name)
    return {"tools": shown, "next": following}


async def show_tool(desk: Desk, _: Nothing) -> Any:
    """`GET tools/{name}`: the whole definition."""
    return whole(desk.gate, desk.names[0])


async def export_tools(desk: Desk, given: Exported) -> Any:
    """`GET export?format=&tenant=&agent=`: what an agent may call, as a model's API takes it."""
    if given.format not in FORMATS:
        raise InvalidRequest(
            f"'format' must be one of: {', '.join(FORMATS)}." + nearest(given.format, FORMATS)
        )
    whom = _whom(desk, given) or Caller(tenant=desk.need_tenant())
    return {"tools": export(await desk.gate.discover(whom), given.format)}


async def reload(desk: Desk, _: Signed) -> Any:
    """`POST reload`: every source is asked again; one that fails keeps what it had."""
    return await read_again(desk.gate)


async def read_again(gate: Runtime) -> dict[str, Any]:
    """Ask every source again, and say what there is now."""
    before = gate.catalog.current
    await gate.catalog.reload()
    now = gate.catalog.current
    return {
        "tools": len(now.specs),
        "new": sorted(now.specs.keys() - before.specs.keys()),
        "gone": sorted(before.specs.keys() - now.specs.keys()),
        "changed": sorted(
            name
            for name in now.specs.keys() & before.specs.keys()
            if now.specs[name].fingerprint != before.specs[name].fingerprint
        ),
        "problems": [
            {
                "source": one.source,
                "problem": one.problem,
                "tools": one.tools,
                "stale": one.stale,
            }
            for one in gate.catalog.health()
            if not one.ok
        ],
    }


async def rows(gate: Runtime, whom: Caller | None, text: str = "") -> list[dict[str, str]]:
    """The tools of the catalog, or those that this caller may call."""
    specs = gate.catalog.current.specs.values() if whom is None else await gate.discover(whom)
    words = text.lower().split()
    return [_row(gate, spec, whom) for spec in specs if _has(spec, words)]


def whole(gate: Runtime, name: str) -> dict[str, Any]:
    """One tool's definition, where it comes from and how it stands."""
    spec = find(gate, name)
    state = state_of(gate, spec)
    return definition(spec) | {
        "origin": str(spec.origin),
        "fingerprint": spec.fingerprint,
        "state": state.word,
        "reason": state.reason,
    }


def find(gate: Runtime, name: str) -> ToolSpec:
    """The tool of this name, or `NoSuchTool` with the nearest one."""
    spec = gate.catalog.current.get(name)
    if spec is None:
        raise NoSuchTool(unknown(name, gate.catalog.current.specs))
    return spec


def unknown(name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not in the catalog."""
    shown = name if len(name) <= 64 else name[:64] + "…"
    close = difflib.get_close_matches(name[:128], islice(known, _MOST_COMPARED), n=1)
    hint = f"Did you mean {close[0]!r}?" if close else "See which there are: toolgate tools list"
    return f"There is no tool {shown!r} in the catalog. {hint}"


def state_of(gate: Runtime, spec: ToolSpec) -> State:
    """How the tool stands for everyone."""
    reason = gate.catalog.current.unusable.get(spec.name)
    if reason is not None:
        return State("unusable", reason)
    said = gate.tenancy.world.everyone.flags.get(spec.name)
    if not (spec.enabled if said is None else said):
        return State("off")
    return _on(gate, spec)


def _on(gate: Runtime, spec: ToolSpec) -> State:
    """On, unless the server that runs it is away for now."""
    server = gate.upstreams.get(spec.origin.where) if spec.origin.kind == "mcp" else None
    if server is not None and server.problem:
        return State("away", f"its server is away: {server.problem}")
    return State("on")


def _name(row: dict[str, str]) -> str:
    return row["name"]


def _has(spec: ToolSpec, words: list[str]) -> bool:
    text = f"{spec.name} {spec.description}".lower()
    return all(word in text for word in words)


def _row(gate: Runtime, spec: ToolSpec, whom: Caller | None) -> dict[str, str]:
    # What an agent may call is on for it, whatever holds for everyone.
    state = state_of(gate, spec) if whom is None else _on(gate, spec)
    return {
        "name": spec.name,
        "category": spec.category,
        "effect": str(spec.effect),
        "state": state.word,
        "reason": state.reason,
        "description": spec.description,
        "origin": str(spec.origin),
    }


def _whom(desk: Desk, given: Whose) -> Caller | None:
    context = Context(
        read_only=flag("read_only", given.read_only), no_web=flag("no_web", given.no_web)
    )
    tenant = desk.tenant
    if not tenant:
        return None
    return Caller(
        tenant=tenant,
        agent=given.agent,
        user=given.user,
        persona=given.persona,
        roles=tuple(part for part in given.role.split(",") if part),
        session=given.session,
        context=context,
    )
