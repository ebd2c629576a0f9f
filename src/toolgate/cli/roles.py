"""`toolgate roles`: what a role may use, in categories or in selectors."""

from typing import Annotated, Any

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.operator import Everywhere, Why, signed, whole
from toolgate.cli.session import Config, Json, usage, with_gate
from toolgate.tenancy.layer import Layer, Permissions, roles_of
from toolgate.tenancy.rules import PERMISSIONS

app = typer.Typer(no_args_is_help=True, add_completion=False, help="What a role may use.")
Name = Annotated[str, typer.Argument(help="The role's name.")]


@app.command("list")
def list_(config: Config = None, json: Json = False) -> None:
    """The roles on record. A caller with any other role is refused once there is one."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        world = gate.tenancy.world
        places = [("", world.everyone.layers)]
        places += [(name, world.tenants[name].layers) for name in sorted(world.tenants)]
        return [
            {"role": role, "tenant": tenant, "layers": sum(whose == role for whose, _ in layers)}
            for tenant, layers in places
            for role in sorted(roles_of(layers))
        ]

    rows = with_gate(config, work, json=json)
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
        str, typer.Option("--categories", help="Categories it may use, by commas.")
    ] = "",
    web: Annotated[
        bool, typer.Option("--web", metavar="", help="Also what reaches the web.")
    ] = False,
    tools: Annotated[str, typer.Option("--tools", help="Tools it may use, by commas.")] = "",
    forbid: Annotated[str, typer.Option("--forbid", help="Tools it may never use.")] = "",
    allow: Annotated[
        str, typer.Option("--allow", help="Selectors instead: group:read, category:data, mail.*")
    ] = "",
    tenant: Everywhere = "",
    config: Config = None,
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

    async def work(gate: Toolgate) -> None:
        tenancy = signed(gate, why)
        if allow:
            await tenancy.set_layer(PERMISSIONS, layer, role=name, tenant=tenant)
        else:
            await tenancy.set_role(name, permissions, tenant=tenant)

    with_gate(config, work, json=json)
    where = f" in {tenant}" if tenant else ""
    found = {"role": name, "tenant": tenant} | msgspec.to_builtins(layer)
    may = ", ".join(layer.allow or ()) or "nothing"
    show.told(found, f"Role {name}{where} may use: {may}.", json=json)


@app.command()
def remove(
    name: Name, tenant: Everywhere = "", config: Config = None, why: Why = "", json: Json = False
) -> None:
    """Take a role off the record, with all its layers."""

    async def work(gate: Toolgate) -> None:
        await signed(gate, why).remove_role(name, tenant=tenant)

    with_gate(config, work, json=json)
    told = f"Role {name} is gone; callers that have it are refused while other roles are there."
    show.told({"role": name, "tenant": tenant, "removed": True}, told, json=json)
