"""`toolgate call NAME --args JSON`: one governed call on the local store."""

from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.call import Caller, Output, Turn
from toolgate.cli import show
from toolgate.cli.session import (
    AGENT,
    TENANT,
    Agent,
    Config,
    Json,
    Tenant,
    caller_of,
    interrupted,
    usage,
    with_gate,
)
from toolgate.cli.state import unknown
from toolgate.errors import ToolNotFound
from toolgate.spec.json_object import parse_object
from toolgate.spec.tool import ToolSpec

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
    begun: list[ToolSpec] = []

    async def work(gate: Toolgate) -> Output:
        group = Turn(group=turn) if turn else None
        begun.extend(spec for spec in [gate.catalog.current.get(name)] if spec)
        try:
            return await gate.call(name, given, caller=caller, turn=group)
        except ToolNotFound as error:
            error.add_note(_why(gate, name, caller))
            raise

    try:
        output = with_gate(config, work, json=json)
    except KeyboardInterrupt:
        raise interrupted(_how_it_stands(begun), json=json) from None
    if json:
        show.as_json(output.to_machine())
    else:
        show.line(output.to_human())
    if not output.ok:
        raise typer.Exit(1)


def _why(gate: Toolgate, name: str, caller: Caller) -> str:
    """A caller is not told whether a tool is hidden or missing; who sits here is the operator."""
    if gate.catalog.current.get(name) is None:
        return unknown(name, gate.catalog.current.specs)
    whom = f" --tenant {caller.tenant}" if caller.tenant != TENANT else ""
    whom += f" --agent {caller.agent}" if caller.agent != AGENT else ""
    return f"`toolgate explain {name}{whom}` says why."


def _how_it_stands(begun: list[ToolSpec]) -> str:
    if not begun:
        return "Stopped before the call was made; nothing ran."
    [spec] = begun
    if spec.effect.repeatable:
        return f"Stopped. {spec.name!r} is repeatable: it can be called again."
    return (
        f"Stopped. {spec.name!r} is not repeatable, and the call may have taken effect: "
        "check before you call it again."
    )


def _arguments(text: str, *, json: bool) -> dict[str, Any]:
    try:
        return parse_object(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise usage(f'--args {error}. Write --args \'{{"text": "hi"}}\'.', json=json) from None
