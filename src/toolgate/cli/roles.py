"""`toolgate roles`: what a role may use, in categories or in selectors."""

from typing import Annotated, Any

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import AGAIN, NO_LIST, Everywhere, Why, newcomers, signed, whole
from toolgate.cli.session import Config, Json, usage
from toolgate.tenancy import roster
from toolgate.tenancy.layer import Layer, Permissions, role_rows
from toolgate.tenancy.rules import PERMISSIONS

app = typer.Typer(no_args_is_help=True, add_completion=False, help="What a role may use.")
Name = Annotated[str, typer.Argument(help="The role's name.")]


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """The roles on record. A caller with any other role is refused once there is one."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        kept = gate.tenancy.world.layers()
        return [row for tenant, layers in kept for row in role_rows(tenant, layers)]

    async def far(server: Server) -> list[dict[str, Any]]:
        return await server.each("roles")

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("role", "tenant", "layers"),
        [(row["role"], row["tenant"] or "(every one)", str(row["layers"])) for row in rows],
    )


@app.command("set")
def set_(
    name: Name,
    categories: Annotated[
        list[str], typer.Option("--categories", help=f"Categories it may use, {AGAIN}.")
    ] = NO_LIST,
    web: Annotated[
        bool, typer.Option("--web", metavar="", help="Also what reaches the web.")
    ] = False,
    tools: Annotated[
        list[str], typer.Option("--tools", help=f"Tools it may use, {AGAIN}.")
    ] = NO_LIST,
    forbid: Annotated[
        list[str], typer.Option("--forbid", help=f"Tools it may never use, {AGAIN}.")
    ] = NO_LIST,
    allow: Annotated[
        list[str],
        typer.Option("--allow", help=f"Selectors instead, {AGAIN}: group:read, mail.*"),
    ] = NO_LIST,
    tenant: Everywhere = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Say what a role may use; what was said before is replaced."""
    if allow and (categories or web or tools):
        raise usage("Use --allow, or --categories, --web and --tools; not both.", json=json)
    permissions = Permissions(
        allowed_categories=whole(categories),
        web_access=web,
        allowed_tools=whole(tools),
        forbidden_tools=whole(forbid),
    )
    layer = permissions.layer()
    if allow:
        layer = Layer(allow=whole(allow), deny=whole(forbid))

    async def work(gate: Toolgate) -> list[str]:
        tenancy, before = signed(gate, why), gate.tenancy.world
        if allow:
            await tenancy.set_layer(PERMISSIONS, layer, role=name, tenant=tenant)
        else:
            await tenancy.set_role(name, permissions, tenant=tenant)
        unheard = roster.unheard(layer.allow or (), gate.catalog.current.specs)
        return [*newcomers(before, gate, tenant), *unheard]

    async def far(server: Server) -> list[str]:
        where = {"tenant": tenant, "why": why}
        if allow:
            fields = msgspec.to_builtins(layer) | {"role": name}
            told = await server.put("layers", PERMISSIONS, **fields, **where)
        else:
            given = msgspec.to_builtins(permissions)
            told = await server.put("roles", name, permissions=given, **where)
        return told.get("notes", [])

    notes = administer(Place(config, url, key_file), work, far, json=json)
    where = f" in {tenant}" if tenant else ""
    found = {"role": name, "tenant": tenant} | msgspec.to_builtins(layer)
    may = ", ".join(layer.allow or ()) or "nothing"
    show.told(found, f"Role {name}{where} may use: {may}.", json=json, notes=notes)


@app.command()
def remove(
    name: Name,
    tenant: Everywhere = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Take a role off the record, with all its layers."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).remove_role(name, tenant=tenant)

    async def far(server: Server) -> None:
        await server.delete("roles", name, tenant=tenant, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = f"Role {name} is gone; callers that have it are refused while other roles are there."
    show.told({"role": name, "tenant": tenant, "removed": True}, told, json=json)
