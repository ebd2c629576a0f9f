"""`toolgate audit`: who changed what, when and why."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import orjson
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.session import Config, Json

app = typer.Typer(add_completion=False, help="Show who changed what, when and why.")


@app.command()
def audit(
    config: Config = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Only what concerns this tenant.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """Show who changed what, when and why."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        records = await gate.tenancy.audit(tenant=tenant or None, limit=limit)
        return [
            msgspec.structs.asdict(record) | {"details": dict(record.details)} for record in records
        ]

    rows = administer(config, work, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("when", "who", "change", "tenant", "details", "why"),
        [
            (
                datetime.fromtimestamp(row["at_ns"] / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S"),
                row["who"],
                row["change"],
                row["tenant"] or "(every one)",
                orjson.dumps(row["details"]).decode(),
                row["why"],
            )
            for row in rows
        ],
    )
