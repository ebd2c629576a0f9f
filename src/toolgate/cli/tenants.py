"""`toolgate tenants`: who there is."""

from typing import Annotated

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, signed
from toolgate.cli.session import Config, Json

app = typer.Typer(no_args_is_help=True, add_completion=False, help="List and add tenants.")


@app.command("list")
def list_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """The tenants on record."""

    async def work(gate: Toolgate) -> list[dict[str, object]]:
        tenants = gate.tenancy.world.tenants
        return [{"id": name, "agents": len(tenants[name].capsules)} for name in sorted(tenants)]

    async def far(server: Server) -> list[dict[str, object]]:
        return await server.each("tenants")

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
    else:
        show.table(("tenant", "agents"), [(str(row["id"]), str(row["agents"])) for row in rows])


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The tenant's name.")],
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    plan: Annotated[
        str, typer.Option("--plan", help="Its budget plan: free, starter, team or enterprise.")
    ] = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Put a tenant on record, or give it another plan."""

    async def work(gate: Toolgate) -> None:
        hand = signed(gate, why)
        await (hand.set_plan(name, plan) if plan else hand.add_tenant(name))

    async def far(server: Server) -> None:
        await server.put("tenants", name, why=why, **({"plan": plan} if plan else {}))

    administer(Place(config, url, key_file), work, far, json=json)
    with_plan = f" with the plan {plan}" if plan else ""
    row = {"id": name, "plan": plan} if plan else {"id": name}
    show.told(row, f"Tenant {name} is on record{with_plan}.", json=json)
