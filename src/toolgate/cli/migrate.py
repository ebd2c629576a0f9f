"""`toolgate migrate`: make or upgrade the tables, before anything is served."""

import asyncio

import typer

from toolgate import storage
from toolgate.cli import show
from toolgate.cli.session import Config, Json, ending, load

app = typer.Typer(add_completion=False, help="Make or upgrade the tables of the store.")


@app.command()
def migrate(config: Config = None, json: Json = False) -> None:
    """Make or upgrade the tables of the store.

    By `[store] migrate_url`, where it is set.
    """
    with ending(json=json):
        asyncio.run(storage.upgrade(load(config)))
    if json:
        show.as_json({"store": "current"})
    else:
        show.line("The store is up to date.")
