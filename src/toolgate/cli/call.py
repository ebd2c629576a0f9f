"""`toolgate call NAME --args JSON`: one governed call on the local store."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.call import Output, Turn
from toolgate.cli import show
from toolgate.cli.session import (
    AGENT,
    TENANT,
    Agent,
    Config,
    Json,
    Tenant,
    caller_of,
    usage,
    with_gate,
)
from toolgate.server.body import parse_object

app = typer.Typer(add_completion=False, help="Call a tool.")


@app.command()
def call(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    args: Annotated[str, typer.Option("--args", help="Its arguments, as a JSON object.")] = "{}",
    config: Config = None,
    tenant: Tenant = TENANT,
    agent: Agent = AGENT,
    user: Annotated[str, typer.Option("--user", help="On whose behalf.")] = "",
    turn: Annotated[str, typer.Option("--turn", help="The turn group it belongs to.")] = "",
    json: Json = False,
) -> None:
    """Call a tool."""
    given = _arguments(args, json=json)
    caller = caller_of(tenant, agent, user=user, json=json)

    async def work(gate: Toolgate) -> Output:
        group = Turn(group=turn) if turn else None
        return await gate.call(name, given, caller=caller, turn=group)

    output = with_gate(config, work, json=json)
    if json:
        show.as_json(output.to_machine())
    else:
        show.line(output.to_human())
    if not output.ok:
        raise typer.Exit(1)


def _arguments(text: str, *, json: bool) -> dict[str, Any]:
    try:
        return parse_object(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise usage(f'--args {error}. Write --args \'{{"text": "hi"}}\'.', json=json) from None
