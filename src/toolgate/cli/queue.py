"""`toolgate queue`: calls that wait for a worker, and those that no worker could run."""

from typing import Annotated, Any

import typer

from toolgate import clock
from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import login
from toolgate.cli.session import TENANT, Config, Json, Tenant, usage
from toolgate.errors import CallNotFound
from toolgate.executor.aftercare import shown
from toolgate.queue.queue import is_call

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Calls that wait for a worker, and dead ones.",
)


@app.command("show")
def show_(
    config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """How many calls wait, are under way, and are dead."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        return shown.depth(await gate.queue.calls.depth())

    async def far(server: Server) -> dict[str, Any]:
        return await server.get("queue")

    found = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(found)
        return
    for name in ("waiting", "sent", "taken", "dead"):
        show.field(name, f"{found[name]:,}")
    _tell_oldest(found["oldest_ns"], found.get("unheld_ns", 0))
    if found["oldest_ns"] and not found["taken"]:
        show.line("No worker has any of them now. To start one: toolgate worker")


@app.command()
def dead(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Only this tenant's.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """Calls that no worker could run, the newest first, and why."""

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        return [shown.dead(one) for one in await gate.queue.dead.page(tenant, most=limit)]

    async def far(server: Server) -> list[dict[str, Any]]:
        return (await server.get("queue/dead", tenant=tenant, limit=limit))["calls"]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
    elif not rows:
        show.line("No call is dead: each was run, waits, or is under way.")
    else:
        show.table(
            ("when", "call", "tenant", "tool", "agent", "attempts", "why"),
            [
                (
                    show.moment(row["ended_ns"]),
                    row["call_id"],
                    row["tenant"],
                    row["tool"],
                    row["agent"],
                    str(row["attempts"]),
                    row["why"],
                )
                for row in rows
            ],
        )
        show.line("To try one again: toolgate queue retry CALL --tenant NAME --why REASON")
        show.line("To give one up: toolgate queue discard CALL --tenant NAME --why REASON")
        if any(not row["tenant"] for row in rows):
            show.line("What nobody could read: toolgate queue discard --unreadable --why REASON")


@app.command()
def retry(
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="The call's id.")],
    why: Annotated[str, typer.Option("--why", help="The reason, for the audit.")],
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """Try a dead call again, as if for the first time."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        if not await gate.queue.dead.again(tenant, call_id, who=login(), why=why):
            raise CallNotFound(call_id, "dead call", shown.NO_SUCH_DEAD)
        return {"call_id": call_id, "stage": "waiting"}

    async def far(server: Server) -> dict[str, Any]:
        return await server.post("queue", call_id, "retry", tenant=tenant, why=why)

    row = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(row)
    else:
        show.line(f"{call_id} waits for a worker again.")


@app.command()
def discard(
    why: Annotated[str, typer.Option("--why", help="The reason, for the audit.")],
    call_id: Annotated[
        str, typer.Argument(metavar="[CALL]", help="The id, as `toolgate queue dead` lists it.")
    ] = "",
    unreadable: Annotated[
        bool, typer.Option("--unreadable", help="All messages that nobody could read.")
    ] = False,
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    json: Json = False,
) -> None:
    """Give up what is dead: it stays undone, and is listed no more."""
    if bool(call_id) is unreadable:
        raise usage("Name one: CALL, or --unreadable for all that nobody could read.", json=json)
    # A message that is no call is known by where it lay, and is no tenant's.
    whose = tenant if is_call(call_id) else ""

    async def work(gate: Toolgate) -> dict[str, Any]:
        dead = gate.queue.dead
        if unreadable:
            return {"discarded": await dead.discard_unreadable(who=login(), why=why)}
        if not await dead.discard(whose, call_id, who=login(), why=why):
            raise CallNotFound(call_id, "dead call", shown.NOT_DEAD)
        return {"discarded": 1}

    async def far(server: Server) -> dict[str, Any]:
        if unreadable:
            return await server.post("queue/discard", why=why)
        return await server.post("queue", call_id, "discard", tenant=whose, why=why)

    row = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(row)
    elif unreadable:
        show.line(f"{row['discarded']:,} messages that nobody could read are discarded.")
    else:
        show.line(f"{call_id} is discarded.")


def _tell_oldest(oldest_ns: int | None, unheld_ns: int | None) -> None:
    """Of all that are not over, and of those that no worker holds where that is another one."""
    if oldest_ns and oldest_ns != unheld_ns:
        show.field("oldest", f"{_age(oldest_ns)}, held by a worker")
    if unheld_ns:
        name = "oldest" if oldest_ns == unheld_ns else "next"
        show.field(name, f"{_age(unheld_ns)}, held by no worker")


def _age(since_ns: int) -> str:
    return f"{max(clock.unix_ns() - since_ns, 0) / 1e9:,.0f} s"
