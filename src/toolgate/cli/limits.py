"""`toolgate limits`: rate limits, and budgets beside what a plan holds."""

import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import Everywhere, InTenant, Why, need, signed
from toolgate.cli.session import Config, Json, usage
from toolgate.spec.cost import plain

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Rate limits and budgets of tenants."
)
NONE = "none"
_NEGATIVE = re.compile(r"-\.?[0-9]")
# JSON's word for it, which the HTTP door takes.
_NOTHING = frozenset({NONE, "null"})


class Amounts(TyperCommand):
    """A command that takes a number. One below zero looks like an option, and is none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`-5` is no option."""
        if any(_NEGATIVE.match(one) for one in args):
            raise usage(
                f"The most is a number from 0 on, or {NONE}; it cannot be negative.",
                json="--json" in args,
            )
        return super().parse_args(ctx, args)


@app.command("list")
def list_(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Everywhere = "",
    json: Json = False,
) -> None:
    """The limits and budgets that operators gave."""

    async def work(gate: Toolgate) -> list[dict[str, object]]:
        world = gate.tenancy.world
        rows: list[dict[str, object]] = []
        tenants = sorted(world.tenants.items())
        places = [("", world.everyone.rates), *((name, part.rates) for name, part in tenants)]
        for name, rates in places:
            for (persona, tool), limit in sorted(rates.items()):
                rows.append(_row(name, persona, tool, {"calls": limit.calls, "per": limit.per}))
        for name, part in sorted(world.tenants.items()):
            for metric, most in part.budgets.items():
                rows.append(_budget(name, metric, plain(most)))
        return [row for row in rows if not tenant or row["tenant"] in {"", tenant}]

    async def far(server: Server) -> list[dict[str, object]]:
        rates = await server.each("limits", tenant=tenant)
        budgets = (await server.get("budgets", tenant=tenant))["tenants"]
        rows = [_row(one["tenant"], one["persona"], one["tool"], one) for one in rates]
        for name, part in budgets.items():
            for metric, most in part["budgets"].items():
                rows.append(_budget(name, metric, most))
        return rows

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("tenant", "persona", "tool", "metric", "most", "per"),
        [
            (
                str(row["tenant"] or "(each)"),
                str(row["persona"]),
                str(row["tool"]),
                str(row["metric"] or "calls"),
                f"{row['most']:,}",
                str(row["per"]) if row["per"] == "month" else f"{row['per']:g} s",
            )
            for row in rows
        ],
    )


@app.command()
def rate(
    limit: Annotated[str, typer.Argument(help="Such as 600/minute; none takes it away.")],
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Everywhere = "",
    persona: Annotated[str, typer.Option("--persona", help="Only of this persona.")] = "",
    tool: Annotated[str, typer.Option("--tool", help="Only of this tool.")] = "",
    why: Why = "",
    json: Json = False,
) -> None:
    """Limit calls in a time."""
    given = None if limit in _NOTHING else limit

    async def work(gate: Toolgate) -> None:
        if tenant:
            need(gate.tenancy.world, tenant)
        await signed(gate, why).set_rate_limit(given, tenant=tenant, persona=persona, tool=tool)

    async def far(server: Server) -> None:
        await server.put("limits", limit=given, tenant=tenant, persona=persona, tool=tool, why=why)

    administer(Place(config, url, key_file), work, far, json=json, definitions=bool(tool))
    whose = f"tenant {tenant}" if tenant else "each tenant"
    parts = (f"tool {tool}" if tool else "", f"persona {persona}" if persona else "", whose)
    whose = " of ".join(part for part in parts if part)
    row = {"tenant": tenant, "persona": persona, "tool": tool, "limit": given}
    told = "No such limit holds any more" if given is None else f"At most {given} pass"
    show.told(row, f"{told}, of {whose}.", json=json)


@app.command(cls=Amounts)
def budget(
    metric: Annotated[str, typer.Argument(help="Such as tool_calls, or one that tools cost.")],
    most: Annotated[str, typer.Argument(help="The most in a month; none takes it away.")],
    tenant: InTenant,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    why: Why = "",
    json: Json = False,
) -> None:
    """Give a tenant a budget for a month."""
    try:
        given = None if most in _NOTHING else float(most)
    except ValueError:
        raise usage(f"The most is a number, or {NONE}.", json=json) from None

    async def work(gate: Toolgate) -> None:
        need(gate.tenancy.world, tenant)
        await signed(gate, why).set_budget(tenant, metric, given)

    async def far(server: Server) -> None:
        await server.put("budgets", tenant=tenant, metric=metric, most=given, why=why)

    administer(Place(config, url, key_file), work, far, json=json)
    told = "has no budget of its own any more" if given is None else f"may use {most} a month"
    row = {"tenant": tenant, "metric": metric, "most": given}
    show.told(row, f"Tenant {tenant} {told}: {metric}.", json=json)


def _row(tenant: str, persona: str, tool: str, limit: dict[str, Any]) -> dict[str, object]:
    whose = {"tenant": tenant, "persona": persona, "tool": tool, "metric": ""}
    return {**whose, "most": limit["calls"], "per": limit["per"]}


def _budget(tenant: str, metric: str, most: object) -> dict[str, object]:
    whose = {"tenant": tenant, "persona": "", "tool": "", "metric": metric}
    return {**whose, "most": most, "per": "month"}
