"""`toolgate explain NAME --agent A`: every phase's verdict, and what would change it."""

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.cli import show
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.session import AGENT, TENANT, Agent, Config, Json, Tenant, with_gate
from toolgate.cli.whom import (
    NO_ROLES,
    Args,
    NoWeb,
    Persona,
    ReadOnly,
    Roles,
    Session,
    ToolName,
    User,
    caller_with,
    parse_args,
    query_of,
)
from toolgate.gate.decision import Explanation
from toolgate.ledger.budget import Spent
from toolgate.tenancy.names import nearest
from toolgate.tenancy.world import World

app = typer.Typer(add_completion=False, help="Say why an agent may, or may not, call a tool.")


@app.command()
def explain(
    name: ToolName,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    agent: Agent = AGENT,
    user: User = "",
    persona: Persona = "",
    role: Roles = NO_ROLES,
    session: Session = "",
    read_only: ReadOnly = False,
    no_web: NoWeb = False,
    args: Args = "",
    json: Json = False,
) -> None:
    """Say why an agent may, or may not, call a tool."""
    caller = caller_with(
        tenant,
        agent,
        user=user,
        persona=persona,
        roles=role,
        session=session,
        read_only=read_only,
        no_web=no_web,
        json=json,
    )
    given = parse_args(args, json=json) if args else None

    async def work(gate: Toolgate) -> Explanation:
        _warn_of_strangers(gate.tenancy.world, caller)
        return await gate.explain(name, caller=caller, args=given)

    async def far(server: Server) -> Explanation:
        asked = query_of(caller) | ({} if given is None else {"args": args})
        told = await server.ask("GET", "tools", name, "explain", **asked)
        return msgspec.convert(told, Explanation)

    found = with_gate(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(msgspec.to_builtins(found) | {"remedies": found.remedies})
    else:
        _tell(found, caller)
    if not found.allowed:
        raise typer.Exit(1)


def _warn_of_strangers(world: World, caller: Caller) -> None:
    """A name that is misspelt would be explained as if it were somebody's."""
    tenant, agent, kept = caller.tenant, caller.agent, world.tenant(caller.tenant)
    # The ones that are meant where none is named; the first start of a server makes them.
    if (tenant, agent) == (TENANT, AGENT):
        return
    who, near = "", ""
    if tenant not in world.tenants:
        who, near = f"tenant {tenant!r}", nearest(tenant, world.tenants)
    elif agent and agent not in kept.capsules and agent not in kept.removed:
        who, near = f"agent {agent!r} of tenant {tenant!r}", nearest(agent, kept.capsules)
    if who:
        show.warning(f"There is no {who} on record; it has what everyone has.{near}")


def _budget(one: Spent, tenant: str) -> str:
    told = f"Of the budget of {one.metric}, {one.used:,} of {one.limit:,} are used in {one.month}"
    if not one.is_full:
        return f"{told}."
    more = f"toolgate limits budget {one.metric} N --tenant {tenant}"
    return f"{told}: a call is refused until the next month, or until there is more: {more}"


def _tell(found: Explanation, caller: Caller) -> None:
    may = f"may call {found.tool}" if found.allowed else f"may not call {found.tool}"
    if found.allowed and found.needs_a_person:
        may += ", and a person must approve each call"
    if found.observed:
        may += ", only because the policy observes"
    show.line(f"Agent {caller.agent} of {caller.tenant} {may}: {found.deciding.reason}.")
    show.table(
        ("phase", "verdict", "rule", "reason"),
        [
            (one.phase, "yes" if one.allowed else "no", one.rule, one.reason)
            for one in found.verdicts
        ],
        {"yes": "green", "no": "red"},
    )
    to = "To allow it also when the policy enforces" if found.allowed else "To allow it"
    if len(found.remedies) == 1:
        show.line(f"{to}: {found.remedies[0]}")
    elif found.remedies:
        show.line(f"{to}, all of these:")
        for remedy in found.remedies:
            show.line(f"  {remedy}")
    for one in found.budgets:
        show.line(_budget(one, caller.tenant))
