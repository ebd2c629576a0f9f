"""`toolgate approvals`: what persons are asked, and their word on it."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.administer import administer
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.operator import login
from toolgate.cli.session import Config, Json
from toolgate.errors import ApprovalNotFound
from toolgate.executor.people.desk import told
from toolgate.ledger.approval import Standing

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="What persons are asked, and decide."
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The approval's id.")]
Reason = Annotated[str, typer.Option("--reason", "--why", help="The reason, for the record.")]
_MOST_CELL = 60


class Which(StrEnum):
    """Which of them are listed."""

    WAITING = "waiting"
    APPROVED = "approved"
    DENIED = "denied"
    USED = "used"
    EXPIRED = "expired"
    ALL = "all"


@app.command("list")
def list_(
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Annotated[str, typer.Option("--tenant", help="Only of this tenant.")] = "",
    state: Annotated[Which, typer.Option("--state", help="How far they got.")] = Which.WAITING,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="At most so many.")] = 50,
    json: Json = False,
) -> None:
    """What waits for a person, the newest first."""
    states = frozenset[Standing]() if state is Which.ALL else frozenset({Standing(state)})

    async def work(gate: Toolgate) -> list[dict[str, Any]]:
        return [told(one) for one in await gate.approvals.list(tenant, states=states, limit=limit)]

    async def far(server: Server) -> list[dict[str, Any]]:
        found = await server.ask("GET", "approvals", tenant=tenant, state=state.value, limit=limit)
        return found["approvals"]

    rows = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(rows)
        return
    show.table(
        ("id", "state", "kind", "tool", "tenant", "agent", "user", "until", "arguments"),
        [
            (
                row["id"],
                row["state"],
                row["kind"],
                row["tool"],
                row["tenant"],
                row["agent"],
                row["user"],
                show.moment(row["expires_ns"]),
                _short(row["args"]),
            )
            for row in rows
        ],
    )


@app.command("show")
def show_(
    id_: Id, config: Config = None, url: Url = "", key_file: KeyFile = None, json: Json = False
) -> None:
    """One of them, with all of its arguments and the code that says they were shown."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        found = await gate.approvals.find(id_, by=login())
        if found is None:
            raise ApprovalNotFound
        return told(found, whole=True)

    async def far(server: Server) -> dict[str, Any]:
        return await server.ask("GET", "approvals", id_)

    row = administer(Place(config, url, key_file), work, far, json=json)
    if json:
        show.as_json(row)
        return
    asked = f"{row['agent']} of {row['tenant']}" + (f" for {row['user']}" if row["user"] else "")
    show.line(f"{row['tool']} ({row['kind']}, {row['state']}), asked for by {asked}")
    show.line(row["prompt"])
    show.line(row["args"])
    show.line(f"until {show.moment(row['expires_ns'])}; these arguments were shown: {row['seen']}")
    if row["decided_by"]:
        why = f": {row['reason']}" if row["reason"] else ""
        show.line(f"decided by {row['decided_by']}, {show.moment(row['decided_ns'])}{why}")


@app.command()
def approve(
    id_: Id,
    reason: Reason = "",
    seen: Annotated[
        str,
        typer.Option("--seen", help="For long arguments: the code that `show` gives with them."),
    ] = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    json: Json = False,
) -> None:
    """Agree to this very call, once."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        return told(await gate.approvals.approve(id_, by=login(), reason=reason, seen=seen))

    async def far(server: Server) -> dict[str, Any]:
        body = {"reason": reason} | ({"seen": seen} if seen else {})
        return await server.ask("POST", "approvals", id_, "approve", body=body)

    row = administer(Place(config, url, key_file), work, far, json=json)
    sentence = (
        f"{row['tool']} may run once, with these arguments, until {show.moment(row['expires_ns'])}."
    )
    show.told(row, sentence, json=json)


@app.command()
def deny(
    id_: Id,
    reason: Reason = "",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    json: Json = False,
) -> None:
    """Say no to this call."""

    async def work(gate: Toolgate) -> dict[str, Any]:
        return told(await gate.approvals.deny(id_, by=login(), reason=reason))

    async def far(server: Server) -> dict[str, Any]:
        return await server.ask("POST", "approvals", id_, "deny", body={"reason": reason})

    row = administer(Place(config, url, key_file), work, far, json=json)
    show.told(row, f"{row['tool']} is refused with these arguments.", json=json)


def _short(args: str) -> str:
    line = " ".join(args.split())
    return line if len(line) <= _MOST_CELL else f"{line[:_MOST_CELL]}… (see it with show)"
