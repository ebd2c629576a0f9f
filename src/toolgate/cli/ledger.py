"""`toolgate ledger`: what agents did, taking it back, and settling what nobody knows."""

from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import login
from toolgate.cli.session import TENANT, Config, Json, Tenant, usage, with_gate
from toolgate.executor.aftercare import shown
from toolgate.ledger.ledger import Which
from toolgate.ledger.state import State

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show, take back and settle what agents did.",
)
Id = Annotated[str, typer.Argument(metavar="CALL", help="The call's id.")]
Why = Annotated[str, typer.Option("--why", help="The reason, for the audit.")]
Turn = Annotated[str, typer.Option("--turn", help="A turn group.")]
Chain = Annotated[str, typer.Option("--chain", help="A chain.")]
_STYLES = {
    "succeeded": "green",
    "undone": "green",
    "unknown": "red",
    "failed": "yellow",
    "compensation_failed": "red",
}


class Happened(StrEnum):
    """What became of it."""

    YES = "happened"
    NO = "did-not-happen"


@app.command("list")
def list_(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    turn: Turn = "",
    chain: Chain = "",
    tool: Annotated[str, typer.Option("--tool", help="Only calls of this tool.")] = "",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent's.")] = "",
    state: Annotated[State | None, typer.Option("--state", help="How far they got.")] = None,
    before: Annotated[str, typer.Option("--before", help="Only those before this call.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """Side effects, the newest first."""
    which = Which(
        tenant=tenant,
        turn_group=turn,
        chain=chain,
        tool=tool,
        agent=agent,
        states=frozenset() if state is None else frozenset({state}),
        before=before,
        limit=limit,
    )

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        return [shown.summary(entry) for entry in await gate.ledger.search(which)]

    async def far(server: Server) -> list[dict[str, Any]]:
        found = await server.get(
            "calls",
            tenant=tenant,
            turn_group=turn,
            chain=chain,
            tool=tool,
            agent=agent,
            state=state,
            before=before,
            limit=limit,
        )
        return found["calls"]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    if not rows:
        show.line(
            f"No such side effect of tenant {tenant} is on record; --tenant NAME looks at another."
        )
        return
    show.table(
        ("when", "call", "tool", "agent", "user", "state", "turn group", "why"),
        [
            (
                show.moment(row["started_ns"]),
                row["call_id"],
                row["tool"],
                row["agent"],
                row["user"],
                row["state"],
                row.get("turn_group", ""),
                row.get("error", {}).get("message", ""),
            )
            for row in rows
        ],
        _STYLES,
    )


@app.command("show")
def show_(
    call_id: Id,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """All that is on record of one call, and of those that ran it again or took it back."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        call = await gate.find(tenant, call_id)
        linked = await gate.ledger.search(call.linked(tenant, call_id))
        return call.shown() | {"linked": [shown.summary(one) for one in linked]}

    async def far(server: Server) -> dict[str, Any]:
        return await server.get("calls", call_id, tenant=tenant)

    row = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(row)
        return
    row["started"] = show.moment(row["started_ns"])
    for name in ("call_id", "tool", "effect", "state", "started", "agent", "user", "turn_group"):
        show.field(name, row.get(name, ""))
    for name in ("args", "output", "undo", "error", "queue"):
        if row.get(name) is not None:
            show.field(name, orjson.dumps(row[name]).decode())
    if "answered_by" in row:
        show.line(f"answered by {row['answered_by']}, which ran for both")
    for one in row["linked"]:
        how = "taken back by" if one.get("undo_of") else "run again as"
        show.line(f"{how} {one['call_id']} ({one['state']})")


@app.command()
def undo(
    why: Why,
    call_id: Annotated[
        str, typer.Argument(metavar="CALL", help="The call's id; or --turn, or --chain.")
    ] = "",
    turn: Turn = "",
    chain: Chain = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """Take back a call, a turn group or a chain, as the agents that did it."""
    if sum(map(bool, (call_id, turn, chain))) != 1:
        raise usage("Name one of them: a call, --turn GROUP or --chain ID.", json=json)

    async def work(gate: Toolgate) -> dict[str, Any]:
        report = await gate.undo_for(
            tenant,
            who=login(),
            why=why,
            call_id=call_id or None,
            turn_group=turn or None,
            chain=chain or None,
        )
        return report.to_machine()

    async def far(server: Server) -> dict[str, Any]:
        what = {"call_id": call_id, "turn_group": turn, "chain": chain}
        named = {field: value for field, value in what.items() if value}
        return await server.post("undo", tenant=tenant, why=why, **named)

    report = with_gate(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(report)
    elif not report["items"]:
        show.line("There is nothing on record to take back.")
    else:
        show.table(
            ("call", "tool", "result", "why", "undo call"),
            [
                (one["call_id"], one["tool"], one["result"], one["reason"], one["undo_call_id"])
                for one in report["items"]
            ],
            _STYLES,
        )
    if not report["ok"]:
        raise typer.Exit(1)


@app.command()
def settle(
    call_id: Id,
    outcome: Annotated[Happened, typer.Argument(help="What became of it.")],
    why: Why,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """Say of a call whose end is unknown whether it happened."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        happened = outcome is Happened.YES
        entry = await gate.settling.settle(tenant, call_id, happened=happened, who=login(), why=why)
        return shown.summary(entry)

    async def far(server: Server) -> dict[str, Any]:
        happened = outcome is Happened.YES
        return await server.post(
            "calls", call_id, "settle", tenant=tenant, happened=happened, why=why
        )

    row = administer(Place(config, url, key_file), work, far, json=json)
    show.told(row, f"{row['tool']} ({row['call_id']}) is {row['state']} now.", json=json)


@app.command()
def again(
    call_id: Id,
    why: Why,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """Run a call once more, as a new one of the same caller."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        output = await gate.settling.again(tenant, call_id, who=login(), why=why)
        return output.to_machine()

    async def far(server: Server) -> dict[str, Any]:
        return await server.post("calls", call_id, "again", tenant=tenant, why=why)

    output = with_gate(Place(config, url, key_file), work, far, json=json)
    how = "was run again before" if output["cached"] else "ran again"
    show.told(output, f"It {how} as {output['call_id']}: {output['status']}.", json=json)
    if not output["ok"]:
        raise typer.Exit(1)
