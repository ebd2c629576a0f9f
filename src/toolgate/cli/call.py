"""`toolgate call NAME --args JSON`: one governed call."""

import shlex
from typing import Annotated, Any

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.call import Output, Turn
from toolgate.caller import NO_CONTEXT, Caller
from toolgate.cli import picture, show
from toolgate.cli.far import KeyFile, Place, Server, Url
from toolgate.cli.session import (
    AGENT,
    TENANT,
    Agent,
    Config,
    Json,
    Tenant,
    interrupted,
    usage,
    with_gate,
)
from toolgate.cli.whom import (
    NO_ROLES,
    Args,
    NoWeb,
    Persona,
    ReadOnly,
    Roles,
    Session,
    ToolName,
    User,
    caller_with,
    options_of,
    parse_args,
)
from toolgate.errors import PermissionDenied, ToolNotFound
from toolgate.executor.bare import bare
from toolgate.server.admin.tools import unknown
from toolgate.spec.schema import Schema
from toolgate.spec.tool import ToolSpec

_FAR = "Stopped. The server goes on with what has begun; what became of it: toolgate ledger list"
app = typer.Typer(add_completion=False, help="Call a tool.")


@app.command()
def call(
    name: ToolName,
    args: Args = "{}",
    config: Config = None,
    url: Url = "",
    key_file: KeyFile = None,
    tenant: Tenant = TENANT,
    agent: Agent = AGENT,
    user: User = "",
    persona: Persona = "",
    role: Roles = NO_ROLES,
    session: Session = "",
    read_only: ReadOnly = False,
    no_web: NoWeb = False,
    turn: Annotated[str, typer.Option("--turn", help="The turn group it belongs to.")] = "",
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="Calls with the same key run once.")
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option("--wait", help="Seconds to wait for the same call, or for a person."),
    ] = None,
    json: Json = False,
) -> None:
    """Call a tool."""
    given = parse_args(args, json=json)
    caller = caller_with(
        tenant,
        agent,
        user=user,
        persona=persona,
        roles=role,
        session=session,
        read_only=read_only,
        no_web=no_web,
        json=json,
    )
    place = Place(config, url, key_file)
    if place.is_far:
        _only_the_key(caller, json=json)
    begun: list[ToolSpec] = []
    alone: list[Any] = []
    schemas: list[Schema | None] = []

    async def work(gate: Toolgate) -> Output:
        group = Turn(group=turn) if turn else None
        begun.extend(spec for spec in [gate.catalog.current.get(name)] if spec)
        schemas.extend(spec.output_schema for spec in begun)
        try:
            output = await gate.call(
                name,
                given,
                caller=caller,
                turn=group,
                idempotency_key=idempotency_key,
                wait_s=wait,
            )
        except ToolNotFound as error:
            error.add_note(_why(gate, name, caller))
            raise
        except PermissionDenied as error:
            error.add_note(f"{error.phase}: {error.reason}")
            raise
        if not gate.features.structured_tool_output:
            alone.append(bare(output))
        return output

    async def far(server: Server) -> Output:
        context = {"read_only": read_only, "no_web": no_web}
        asked = {
            "tool": name,
            "args": given,
            "turn": {"group": turn} if turn else None,
            "session": session or None,
            "context": context if any(context.values()) else None,
            "idempotency_key": idempotency_key,
            "wait_s": wait,
        }
        body = {field: value for field, value in asked.items() if value is not None}
        output = _output(await server.ask("POST", "call", body=body), alone)
        if output.ok and not json and picture.is_looked_at():
            schemas.append(await picture.schema_there(server, name))
        return output

    try:
        output = with_gate(place, work, far, json=json, works=True)
    except KeyboardInterrupt:
        told = _FAR if place.is_far else _how_it_stands(begun)
        raise interrupted(told, json=json) from None
    if json:
        show.as_json(alone[0] if alone else output.to_machine())
    elif not (output.ok and schemas and picture.draw(output.data, schemas[0])):
        _tell(output, caller)
    if not output.ok:
        raise typer.Exit(1)


def _tell(output: Output, caller: Caller) -> None:
    """What there is of an answer; what went wrong is told beside it, where refusals are."""
    if output.error is None or output.data is not None:
        show.line(msgspec.structs.replace(output, error=None).to_human())
    if output.error is not None:
        show.aside(f"{output.error.code}: {output.error.message}")
    for note in _what_to_do(output, caller):
        show.aside(note)


def _output(told: Any, alone: list[Any]) -> Output:
    try:
        return msgspec.convert(told, Output)
    except msgspec.ValidationError:
        # A server that is set to answer with bare results.
        alone.append(told)
        return Output(status="success", data=told)


def _only_the_key(caller: Caller, *, json: bool) -> None:
    """To a server the key says who calls; what would be ignored is refused."""
    claimed = msgspec.structs.replace(caller, session="", context=NO_CONTEXT)
    if claimed != Caller(tenant=TENANT, agent=AGENT):
        raise usage(
            "With --url the key says who calls: leave --tenant, --agent, --user, --persona and "
            "--role out, or use a key of that agent.",
            json=json,
        )


def _what_to_do(output: Output, caller: Caller) -> list[str]:
    """Where a call waits for somebody: its id, and the command for whoever sits here."""
    if output.status == "pending_approval" and output.error is not None:
        where = output.error.details.get("where", {})
        return [f"To look at it: {_look(where)}", f"To agree: {where['command']}"] if where else []
    if output.status == "queued":
        of = [output.call_id, *options_of(Caller(tenant=caller.tenant, agent=AGENT))]
        return [f"How it stands: toolgate ledger show {shlex.join(of)}"]
    if output.status == "unknown":
        of = [output.call_id, *options_of(Caller(tenant=caller.tenant, agent=AGENT))]
        return [f"What is on record of it: toolgate ledger show {shlex.join(of)}"]
    return []


def _look(where: dict[str, str]) -> str:
    return where["command"].replace(" approve ", " show ")


def _why(gate: Toolgate, name: str, caller: Caller) -> str:
    """A caller is not told whether a tool is hidden or missing; who sits here is the operator."""
    if gate.catalog.current.get(name) is None:
        return unknown(name, gate.catalog.current.specs)
    return f"`toolgate explain {shlex.join([name, *options_of(caller)])}` says why."


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
