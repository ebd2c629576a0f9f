"""`toolgate agents`: agents and their capsules."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.capsules import capsule_of, capsule_there, capsules_there
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, newcomers, signed
from toolgate.cli.session import TENANT, Config, Json, Tenant
from toolgate.server.admin.tools import find
from toolgate.tenancy.capsule import EVERYTHING, Capsule, Mode, NewerMessages

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Agents and their capsules.")
Name = Annotated[str, typer.Argument(help="The agent's name.")]


@app.command("list")
def list_(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """The agents of a tenant, and what is switched in their capsules."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        capsules = gate.tenancy.world.tenant(tenant).capsules
        return [_row(*one) for one in sorted(capsules.items())]

    async def far(server: Server) -> list[dict[str, Any]]:
        return [_row(*one) for one in sorted((await capsules_there(server, tenant)).items())]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("agent", "starts from", "newer messages", "on", "off", "asks for more care with"),
        [
            (
                row["id"],
                row["mode"],
                row["newer_messages"],
                *(", ".join(row[field]) for field in ("on", "off", "asks")),
            )
            for row in rows
        ],
    )


@app.command("set")
def set_(
    name: Name,
    mode: Annotated[
        Mode | None,
        typer.Option("--mode", help="all: what the tenant has; listed: only what is switched on."),
    ] = None,
    newer: Annotated[
        NewerMessages | None,
        typer.Option(
            "--newer-messages", help="What it does when they wait before an irreversible call."
        ),
    ] = None,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    why: Why = "",
    json: Json = False,
) -> None:
    """Put an agent on record, or change what its capsule starts from and what it waits for."""

    async def work(gate: Toolgate) -> tuple[Capsule, list[str]]:
        before = gate.tenancy.world
        if newer is not None:
            await signed(gate, why).set_newer_messages(tenant, name, newer)
        if mode is not None or newer is None:
            await signed(gate, why).set_agent(tenant, name, mode or Mode.ALL)
        capsule = gate.tenancy.world.capsule(tenant, name)
        return capsule, newcomers(before, gate, tenant)

    async def far(server: Server) -> tuple[Capsule, list[str]]:
        told = await server.put(
            "agents", name, tenant=tenant, mode=mode, newer_messages=newer, why=why
        )
        return capsule_of(told), told.get("notes", [])

    capsule, notes = administer(Place(config, url, key_file), work, far, json=json)
    is_all = capsule.mode is Mode.ALL
    starts = "all that the tenant has" if is_all else "nothing but what is switched on"
    told = f"Agent {name} of {tenant} starts from {starts}."
    if newer is not None:
        told += f" When newer messages wait: {newer}."
    found = {
        "id": name,
        "tenant": tenant,
        "mode": str(capsule.mode),
        "newer_messages": str(capsule.newer_messages),
    }
    show.told(found, told, json=json, notes=notes)


@app.command()
def override(
    name: Name,
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    confirmation: Annotated[
        bool, typer.Option("--confirmation", metavar="", help="Each call has to be confirmed.")
    ] = False,
    approval: Annotated[
        bool, typer.Option("--approval", metavar="", help="Each call has to be approved.")
    ] = False,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    why: Why = "",
    json: Json = False,
) -> None:
    """Ask for more care with a tool than it does itself; without an option, not any more."""
    asked = {"requires_confirmation": confirmation, "requires_approval": approval}
    overrides = {field: True for field, is_asked in asked.items() if is_asked}

    async def work(gate: Toolgate) -> list[str]:
        find(gate, tool)
        before = gate.tenancy.world
        # One that was removed begins anew, as one that never was.
        has = before.tenant(tenant).capsules.get(name, EVERYTHING).has(tool)
        await signed(gate, why).activate(tenant, name, tool, enabled=has, overrides=overrides)
        return newcomers(before, gate, tenant, name)

    async def far(server: Server) -> list[str]:
        has = (await capsule_there(server, tenant, name)).has(tool)
        told = await server.put(
            "activations",
            tenant=tenant,
            agent=name,
            tool=tool,
            enabled=has,
            overrides=overrides,
            why=why,
        )
        return told.get("notes", [])

    notes = administer(Place(config, url, key_file), work, far, json=json)
    more = " and ".join(overrides) or "nothing more than the tool itself"
    told = f"Agent {name} of {tenant} asks with {tool} for {more}."
    found = {"id": name, "tenant": tenant, "tool": tool, "overrides": overrides}
    show.told(found, told, json=json, notes=notes)


@app.command()
def remove(
    name: Name,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    why: Why = "",
    json: Json = False,
) -> None:
    """Take an agent off the record, with its capsule and its keys."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).remove_agent(tenant, name)

    async def far(server: Server) -> None:
        await server.delete("agents", name, tenant=tenant, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Agent {name} of {tenant} is gone, and so are its keys."
    show.told({"id": name, "tenant": tenant, "removed": True}, told, json=json)


def _row(agent: str, capsule: Capsule) -> dict[str, Any]:
    tools = sorted(capsule.activations.items())
    return {
        "id": agent,
        "mode": str(capsule.mode),
        "newer_messages": str(capsule.newer_messages),
        "on": [name for name, one in tools if one.enabled],
        "off": [name for name, one in tools if not one.enabled],
        "asks": {name: sorted(one.overrides) for name, one in tools if one.overrides},
    }
