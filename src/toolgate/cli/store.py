"""`toolgate store`: whether it is the one last seen here, and what to do where it is not."""

from typing import Annotated

import typer

from toolgate.cli import log, show
from toolgate.cli.far import URL, Place
from toolgate.cli.operator import login
from toolgate.cli.session import Config, Json, at_place, load, usage
from toolgate.storage import lineage

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Whether the store is the one last seen here.",
)
Needed = Annotated[
    str, typer.Option("--why", help="The reason, for the audit.", show_default=False)
]
# No server does this for others: who names one is told so, and not of the store that is here.
NoUrl = Annotated[str, typer.Option("--url", envvar=URL, hidden=True)]


@app.command("show")
def show_(config: Config = None, url: NoUrl = "", json: Json = False) -> None:
    """Say whether the store is in quarantine; exit with 1 where it is."""

    log.to_nobody()

    async def work() -> str:
        async with lineage(load(config)) as (_, hold):
            return hold.why

    why = at_place(Place(config, url), work, None, json=json)
    if json:
        show.as_json({"quarantined": bool(why), "why": why})
    elif why:
        show.line(
            f"The store is in quarantine: {why}. No side effect is begun, taken over or sent. Look "
            "at what happened since, then: toolgate store accept --why REASON"
        )
    else:
        show.line("The store is the one that was last seen here.")
    if why:
        raise typer.Exit(1)


@app.command()
def accept(config: Config = None, url: NoUrl = "", why: Needed = "", json: Json = False) -> None:
    """Take the store as it is: what was open in it is looked after, and what is queued runs."""
    if not why.strip():
        raise usage("Say why, for the audit: --why REASON.", json=json)
    log.to_nobody()

    async def work() -> str:
        async with lineage(load(config)) as (found, hold):
            before = hold.why
            if before:
                await found.accept(login(), why.strip())
            return before

    before = at_place(Place(config, url), work, None, json=json)
    if json:
        show.as_json({"accepted": bool(before)})
    elif before:
        show.line("Accepted. Servers that run go on within seconds.")
    else:
        show.line("The store was not in quarantine; nothing was changed.")
