"""`toolgate tools`: what there is, and switching it on and off."""

import json as json_
from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.catalog_there import exported_there, listed_there, shown_there
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.imports import import_
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
from toolgate.cli.state import STYLES
from toolgate.cli.switch import Switch, turn
from toolgate.cli.whom import (
    NO_ROLES,
    NoWeb,
    Persona,
    ReadOnly,
    Roles,
    Session,
    ToolName,
    User,
    caller_with,
)
from toolgate.server.admin.tools import find, read_again, whole
from toolgate.server.admin.tools import rows as rows_of
from toolgate.spec.export import FORMATS, export

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="List, show, switch and export tools."
)
Name = ToolName
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
    url: Url = "",
    key_file: KeyFile = None,
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
    _show_rows(Place(config, url, key_file), whom, "", json=json)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words of its name or description.")],
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: ListTenant = "",
    agent: ListAgent = "",
    json: Json = False,
) -> None:
    """The tools that have all of these words; with a tenant, of what its agent may call."""
    _check_whom(tenant, agent, json=json)
    whom = caller_with(tenant, agent, json=json) if tenant else None
    _show_rows(Place(config, url, key_file), whom, " ".join(words), json=json)


def _show_rows(place: Place, whom: Caller | None, text: str, *, json: bool) -> None:
    async def work(gate: Toolgate) -> list[dict[str, str]]:
        warn_of_sources(gate)
        return await rows_of(gate, whom, text)

    async def far(server: Server) -> list[dict[str, str]]:
        return await listed_there(server, whom, text)

    if whom is None:
        # What there is takes no decision.
        rows = administer(place, work, far, json=json, definitions=True)
    else:
        rows = with_gate(place, work, far, json=json)
    if json:
        show.as_json(rows)
        return
    columns = ["name", "category", "effect", "state", "description"]
    if any(row["reason"] for row in rows):
        columns.insert(4, "reason")
    show.table(columns, [[row[column] for column in columns] for row in rows], STYLES)


@app.command("show")
def show_(
    name: Name, config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """One tool's whole definition."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        return whole(gate, name)

    async def far(server: Server) -> dict[str, Any]:
        return await shown_there(server, name)

    found = administer(Place(config, url, key_file), work, far, json=json, definitions=True)
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
    url: Url = "",
    key_file: KeyFile = None,
    tenant: SwitchTenant = "",
    agent: SwitchAgent = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Switch a tool on: for everyone, for a tenant, or for one agent."""
    _switch(Switch(name, True, tenant, agent), Place(config, url, key_file), why, json=json)


@app.command()
def disable(
    name: Name,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: SwitchTenant = "",
    agent: SwitchAgent = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Switch a tool off: for everyone, for a tenant, or for one agent."""
    _switch(Switch(name, False, tenant, agent), Place(config, url, key_file), why, json=json)


@app.command()
def reset(
    name: Name,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
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

    async def far(server: Server) -> None:
        await server.put("flags", tool=name, enabled=None, tenant=tenant, why=why)

    administer(Place(config, url, key_file), work, far, json=json, definitions=True)
    told = f"{name} is as its definition has it, but for what tenants say."
    if tenant:
        told = f"Tenant {tenant} has no switch of its own for {name} any more."
    show.told({"tool": name, "tenant": tenant, "enabled": None}, told, json=json)


app.command("import")(import_)


@app.command()
def reload(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Read every source again. A running server does so by itself now and then."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        return await read_again(gate)

    async def far(server: Server) -> dict[str, Any]:
        return await server.post("reload", why=why)

    place = Place(config, url, key_file)
    found = administer(place, work, far, json=json, definitions=True)
    told = f"Every source was read again: {show.count(found['tools'], 'tool')}."
    for word in ("new", "changed", "gone"):
        told += f" {word.capitalize()}: {', '.join(found[word])}." if found[word] else ""
    if json:
        show.as_json(found)
    else:
        show.line(told)
        for one in found["problems"]:
            show.line(_problem(one))
    if found["problems"]:
        raise typer.Exit(1)


def _problem(one: dict[str, Any]) -> str:
    """What is wrong with a source, and what there is of it all the same."""
    how = "stay as before" if one["stale"] else "are there"
    there = f"{show.count(one['tools'], 'tool')} of it {how}"
    if not one["tools"]:
        there = "none of its tools are there"
    return f"{one['source']} ({there}): {one['problem']}"


@app.command("export")
def export_(
    format: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "openai",  # noqa: A002
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
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

    async def far(server: Server) -> Any:
        return await exported_there(server, caller, format)

    told = with_gate(Place(config, url, key_file), work, far, json=json)
    if isinstance(told, str) and not json:
        show.line(told)
    else:
        show.as_json(told)


def _check_whom(tenant: str, agent: str, *, json: bool) -> None:
    if agent and not tenant:
        raise usage("An agent belongs to a tenant: add --tenant.", json=json)


def _switch(switch: Switch, place: Place, why: str, *, json: bool) -> None:
    _check_whom(switch.tenant, switch.agent, json=json)
    notes = turn(switch, place, why, json=json)
    if json:
        show.as_json(switch._asdict() | {"notes": notes})
        return
    show.line(f"{switch.tool} is {'on' if switch.enabled else 'off'} for {switch.whom}.")
    for note in notes:
        show.line(note)
