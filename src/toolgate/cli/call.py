"""`toolgate call NAME --args JSON`: one governed call on the local store."""

from typing import Annotated, Any, cast

import orjson
import typer

from toolgate.bootstrap import Toolgate
from toolgate.call import Caller, Output, Turn
from toolgate.cli import show
from toolgate.cli.session import AGENT, TENANT, Agent, Config, Json, Tenant, usage, with_gate

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
    given = _arguments(args)

    async def work(gate: Toolgate) -> Output:
        caller = Caller(tenant=tenant, agent=agent, user=user)
        group = Turn(group=turn) if turn else None
        return await gate.call(name, given, caller=caller, turn=group)

    output = with_gate(config, work, json=json)
    if json:
        show.as_json(output.to_machine())
    else:
        show.line(output.to_human())
    if not output.ok:
        raise typer.Exit(1)


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise usage(f'--args is not JSON: {error}. Write --args \'{{"text": "hi"}}\'.') from None
    if not isinstance(given, dict):
        raise usage('--args must be a JSON object: --args \'{"text": "hi"}\'.')
    return cast("dict[str, Any]", given)
