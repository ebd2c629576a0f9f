"""`toolgate relations`: who stands how to which tool."""

from typing import Annotated, Literal

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Why, newcomers, signed
from toolgate.cli.session import TENANT, Config, Json, Tenant

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Who stands how to which tool.")
Relations = Annotated[
    list[str],
    typer.Argument(
        metavar="RELATION...",
        help="tool:pay#executor@user:ann, tool:pay#executor@group:finance#member, "
        "group:finance#member@user:ann",
    ),
]


@app.command("list")
def list_(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 1_000,
    json: Json = False,
) -> None:
    """The relations of a tenant."""

    async def work(gate: Toolgate) -> list[str]:
        return [str(one) for one in await gate.tenancy.relations(tenant, limit=limit)]

    async def far(server: Server) -> list[str]:
        return await server.each("relations", tenant=tenant, most=limit)

    found = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
    else:
        for one in found:
            show.line(one)


@app.command()
def add(
    relations: Relations,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    why: Why = "",
    json: Json = False,
) -> None:
    """Put relations on record. One that is there stays."""
    notes = _changed(Place(config, url, key_file), tenant, "add", relations, why, json=json)
    told = f"On record in {tenant}: {', '.join(relations)}."
    show.told({"tenant": tenant, "added": relations}, told, json=json, notes=notes)


@app.command()
def remove(
    relations: Relations,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    why: Why = "",
    json: Json = False,
) -> None:
    """Take relations off the record. One that is not there is no mistake."""
    notes = _changed(Place(config, url, key_file), tenant, "remove", relations, why, json=json)
    told = f"Not on record in {tenant} any more: {', '.join(relations)}."
    show.told({"tenant": tenant, "removed": relations}, told, json=json, notes=notes)


def _changed(
    place: Place,
    tenant: str,
    how: Literal["add", "remove"],
    relations: list[str],
    why: str,
    *,
    json: bool,
) -> list[str]:
    """What is to be told beside it."""

    async def work(gate: Toolgate) -> list[str]:
        before = gate.tenancy.world
        await signed(gate, why).relate(tenant, **{how: relations})
        return newcomers(before, gate, tenant)

    async def far(server: Server) -> list[str]:
        told = await server.post("relations", tenant=tenant, why=why, **{how: relations})
        return told.get("notes", [])

    return administer(place, work, far, json=json)
