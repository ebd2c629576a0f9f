"""`toolgate tools`: what there is, and switching it on and off."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.call import Caller
from toolgate.cli import show
from toolgate.cli.session import Agent, Config, Json, Tenant, caller_of, usage, with_gate
from toolgate.errors import ToolNotFound
from toolgate.spec.export import FORMATS, export
from toolgate.spec.tool import ToolSpec, definition

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="List, show, switch and export tools."
)
Name = Annotated[str, typer.Argument(help="The tool's name.")]


@app.command("list")
def list_(
    config: Config = None, tenant: Tenant = "", agent: Agent = "", json: Json = False
) -> None:
    """All tools of the catalog; with a tenant, what its agent may call."""
    _check_whom(tenant, agent, json=json)
    rows = with_gate(config, lambda gate: _listed(gate, tenant, agent), json=json)
    if json:
        show.as_json(rows)
        return
    columns = ("name", "category", "effect", "state", "description")
    show.table(columns, [[row[column] for column in columns] for row in rows])


@app.command("show")
def show_(name: Name, config: Config = None, json: Json = False) -> None:
    """One tool's whole definition."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        spec = _found(gate, name)
        return definition(spec) | {
            "origin": str(spec.origin),
            "fingerprint": spec.fingerprint,
            "state": _state(gate, spec),
        }

    found = with_gate(config, work, json=json)
    if json:
        show.as_json(found)
        return
    for key, value in found.items():
        if value not in ("", [], None):
            show.line(f"{key + ':':24}{value}")


@app.command()
def enable(
    name: Name, config: Config = None, tenant: Tenant = "", agent: Agent = "", json: Json = False
) -> None:
    """Switch a tool on: for everyone, for a tenant, or for one agent."""
    _switch(name, config, tenant, agent, json, enabled=True)


@app.command()
def disable(
    name: Name, config: Config = None, tenant: Tenant = "", agent: Agent = "", json: Json = False
) -> None:
    """Switch a tool off: for everyone, for a tenant, or for one agent."""
    _switch(name, config, tenant, agent, json, enabled=False)


@app.command("export")
def export_(
    format: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "openai",  # noqa: A002
    config: Config = None,
    tenant: Tenant = "demo",
    agent: Agent = "assistant",
    json: Json = False,
) -> None:
    """What an agent may call, in the words of a model's API."""
    if format not in FORMATS:
        told = f"There is no format {format!r}. Use one of: {', '.join(FORMATS)}."
        raise usage(told, json=json)
    caller = caller_of(tenant, agent, json=json)

    async def work(gate: Toolgate) -> Any:
        return export(await gate.discover(caller), format)

    told = with_gate(config, work, json=json)
    if isinstance(told, str) and not json:
        show.line(told)
    else:
        show.as_json(told)


async def _listed(gate: Toolgate, tenant: str, agent: str) -> list[dict[str, str]]:
    specs = gate.catalog.current.specs.values()
    if tenant:
        specs = await gate.discover(Caller(tenant=tenant, agent=agent))
    return [
        {
            "name": spec.name,
            "category": spec.category,
            "effect": str(spec.effect),
            # What an agent may call is on for it, whatever holds for everyone.
            "state": "on" if tenant else _state(gate, spec),
            "description": spec.description,
            "origin": str(spec.origin),
        }
        for spec in specs
    ]


def _check_whom(tenant: str, agent: str, *, json: bool) -> None:
    if agent and not tenant:
        raise usage("An agent belongs to a tenant: add --tenant.", json=json)


def _state(gate: Toolgate, spec: ToolSpec) -> str:
    if spec.name in gate.catalog.current.unusable:
        return "unusable"
    flag = gate.tenancy.world.tool_flags.get(spec.name)
    return "on" if (spec.enabled if flag is None else flag) else "off"


def _found(gate: Toolgate, name: str) -> ToolSpec:
    spec = gate.catalog.current.get(name)
    if spec is None:
        raise ToolNotFound(name)
    return spec


def _switch(name: str, config: Any, tenant: str, agent: str, json: bool, *, enabled: bool) -> None:
    _check_whom(tenant, agent, json=json)

    async def work(gate: Toolgate) -> None:
        _found(gate, name)
        if agent:
            kept = gate.tenancy.world.capsule(tenant, agent).overrides(name)
            await gate.tenancy.activate(tenant, agent, name, enabled=enabled, overrides=kept)
        elif tenant:
            await gate.tenancy.set_tenant_tool(tenant, name, enabled)
        else:
            await gate.tenancy.set_tool(name, enabled)

    with_gate(config, work, json=json)
    whom = f"agent {agent} of {tenant}" if agent else f"tenant {tenant}" if tenant else "everyone"
    if json:
        show.as_json({"tool": name, "enabled": enabled, "tenant": tenant, "agent": agent})
    else:
        show.line(f"{name} is {'on' if enabled else 'off'} for {whom}.")
