"""`toolgate usage`: what tenants have used this month, beside what they may."""

from typing import Annotated, Any

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.session import Config, Json

app = typer.Typer(add_completion=False, help="Show what tenants have used of their budgets.")


@app.command()
def usage(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Only of this tenant.")] = "",
    month: Annotated[str, typer.Option("--month", help="Another month, such as 2026-11.")] = "",
    json: Json = False,
) -> None:
    """Show what tenants have used of their budgets."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        lines = await gate.usage.lines(tenant=tenant, month=month)
        return [msgspec.to_builtins(line) for line in lines]

    async def far(server: Server) -> list[dict[str, Any]]:
        return await server.each("usage", tenant=tenant, month=month)

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("tenant", "month", "metric", "used", "limit", "held", "plan"),
        [
            (
                row["tenant"],
                row["month"],
                row["metric"],
                f"{'at least ' if row['at_least'] else ''}{row['used']:,}",
                "none" if row["limit"] is None else f"{row['limit']:,}",
                f"{row['held']:,}",
                row["plan"],
            )
            for row in rows
        ],
    )
