"""`toolgate tools`: what there is, and switching it on and off."""

import json as json_
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.call import Caller
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.operator import Why, need, signed
from toolgate.cli.session import (
    AGENT,
    TENANT,
    Agent,
    Config,
    Json,
    Tenant,
    usage,
    warn_of_sources,
    with_gate,
)
from toolgate.cli.state import STYLES, State, find, state_of
from toolgate.cli.switch import Switch, turn
from toolgate.cli.whom import NO_ROLES, NoWeb, Persona, ReadOnly, Roles, Session, User, caller_with
from toolgate.spec.export import FORMATS, export
from toolgate.spec.tool import definition

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="List, show, switch and export tools."
)
Name = Annotated[str, typer.Argument(help="The tool's name.")]
ListTenant = Annotated[
    str,
    typer.Option(
        "--tenant",
        help="Only what may be called in this tenant; without --agent, by an agent that has no "
        "capsule of its own.",
    ),
]
ListAgent = Annotated[
    str, typer.Option("--agent", help="Only what this agent may call; needs --tenant.")
]
SwitchTenant = Annotated[
    str, typer.Option("--tenant", help="Only for this tenant; without it, for everyone.")
]
SwitchAgent = Annotated[
    str, typer.Option("--agent", help="Only for this agent of the tenant; needs --tenant.")
]
_EMPTY: tuple[object, ...] = ("", [], {}, None)


@app.command("list")
def list_(
    config: Config = None,
    tenant: ListTenant = "",
    agent: ListAgent = "",
    user: User = "",
    persona: Persona = "",
    role: Roles = NO_ROLES,
    session: Session = "",
    read_only: ReadOnly = False,
    no_web: NoWeb = False,
    json: Json = False,
) -> None:
    """All tools of the catalog; with a tenant, what its agent may call."""
    _check_whom(tenant, agent, json=json)
    whom: Caller | None = None
    if tenant:
        whom = caller_with(
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
    elif user or persona or role or session or read_only or no_web:
        raise usage("A caller belongs to a tenant: add --tenant.", json=json)
    if whom is None:
        # What there is takes no decision.
        rows = administer(config, lambda gate: _listed(gate, None), json=json, definitions=True)
    else:
        rows = with_gate(config, lambda gate: _listed(gate, whom), json=json)
    if json:
        show.as_json(rows)
        return
    columns = ["name", "category", "effect", "state", "description"]
    if any(row["reason"] for row in rows):
        columns.insert(4, "reason")
    show.table(columns, [[row[column] for column in columns] for row in rows], STYLES)


@app.command("show")
def show_(name: Name, config: Config = None, json: Json = False) -> None:
    """One tool's whole definition."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        spec = find(gate, name)
        state = state_of(gate, spec)
        return definition(spec) | {
            "origin": str(spec.origin),
            "fingerprint": spec.fingerprint,
            "state": state.word,
            "reason": state.reason,
        }

    found = administer(config, work, json=json, definitions=True)
    if json:
        show.as_json(found)
        return
    for key, value in found.items():
        if value not in _EMPTY:
            text = value if isinstance(value, str) else json_.dumps(value, ensure_ascii=False)
            show.line(f"{key + ':':24}{text}")


@app.command()
def enable(
    name: Name,
    config: Config = None,
    tenant: SwitchTenant = "",
    agent: SwitchAgent = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Switch a tool on: for everyone, for a tenant, or for one agent."""
    _switch(Switch(name, True, tenant, agent), config, why, json=json)


@app.command()
def disable(
    name: Name,
    config: Config = None,
    tenant: SwitchTenant = "",
    agent: SwitchAgent = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Switch a tool off: for everyone, for a tenant, or for one agent."""
    _switch(Switch(name, False, tenant, agent), config, why, json=json)


@app.command()
def reset(
    name: Name,
    config: Config = None,
    tenant: SwitchTenant = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Take a switch back: a tenant's, or everyone's, which leaves the tool to its definition."""

    async def work(gate: Toolgate) -> None:
        find(gate, name)
        need(gate.tenancy.world, tenant)
        if tenant:
            await signed(gate, why).set_tenant_tool(tenant, name, None)
        else:
            await signed(gate, why).set_tool(name, None)

    administer(config, work, json=json, definitions=True)
    told = f"{name} is as its definition has it, but for what tenants say."
    if tenant:
        told = f"Tenant {tenant} has no switch of its own for {name} any more."
    show.told({"tool": name, "tenant": tenant, "enabled": None}, told, json=json)


@app.command("export")
def export_(
    format: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "openai",  # noqa: A002
    config: Config = None,
    tenant: Tenant = TENANT,
    agent: Agent = AGENT,
    user: User = "",
    persona: Persona = "",
    role: Roles = NO_ROLES,
    json: Json = False,
) -> None:
    """What an agent may call, in the words of a model's API."""
    if format not in FORMATS:
        told = f"There is no format {format!r}. Use one of: {', '.join(FORMATS)}."
        raise usage(told, json=json)
    caller = caller_with(tenant, agent, user=user, persona=persona, roles=role, json=json)

    async def work(gate: Toolgate) -> Any:
        return export(await gate.discover(caller), format)

    told = with_gate(config, work, json=json)
    if isinstance(told, str) and not json:
        show.line(told)
    else:
        show.as_json(told)


async def _listed(gate: Toolgate, whom: Caller | None) -> list[dict[str, str]]:
    warn_of_sources(gate)
    specs = gate.catalog.current.specs.values()
    if whom is not None:
        specs = await gate.discover(whom)
    rows: list[dict[str, str]] = []
    for spec in specs:
        # What an agent may call is on for it, whatever holds for everyone.
        state = state_of(gate, spec) if whom is None else State("on")
        rows.append(
            {
                "name": spec.name,
                "category": spec.category,
                "effect": str(spec.effect),
                "state": state.word,
                "reason": state.reason,
                "description": spec.description,
                "origin": str(spec.origin),
            }
        )
    return rows


def _check_whom(tenant: str, agent: str, *, json: bool) -> None:
    if agent and not tenant:
        raise usage("An agent belongs to a tenant: add --tenant.", json=json)


def _switch(switch: Switch, config: Path | None, why: str, *, json: bool) -> None:
    _check_whom(switch.tenant, switch.agent, json=json)
    notes = turn(switch, config, why, json=json)
    if json:
        show.as_json(switch._asdict() | {"notes": notes})
        return
    show.line(f"{switch.tool} is {'on' if switch.enabled else 'off'} for {switch.whom}.")
    for note in notes:
        show.line(note)
