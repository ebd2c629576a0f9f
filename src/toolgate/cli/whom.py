"""On whose behalf a command asks: the options that make a caller, and a call's arguments."""

from typing import Annotated, Any

import msgspec
import typer

from toolgate.caller import Caller, Context
from toolgate.cli.completion import tool_names
from toolgate.cli.session import AGENT, TENANT, caller_of, usage
from toolgate.spec.json_object import parse_object

ToolName = Annotated[str, typer.Argument(help="The tool's name.", autocompletion=tool_names)]
User = Annotated[str, typer.Option("--user", help="The user that the agent acts for.")]
Persona = Annotated[str, typer.Option("--persona", help="The persona.")]
Roles = Annotated[list[str], typer.Option("--role", help="A role; can be given again.")]
Session = Annotated[
    str,
    typer.Option(
        "--session", help="The session it belongs to, by the name that this agent and user give it."
    ),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", metavar="", help="In a read-only task.")]
NoWeb = Annotated[bool, typer.Option("--no-web", metavar="", help="In a task without the web.")]
Args = Annotated[str, typer.Option("--args", help="The call's arguments, as a JSON object.")]
NO_ROLES: list[str] = []


def caller_with(
    tenant: str,
    agent: str,
    *,
    json: bool,
    user: str = "",
    persona: str = "",
    roles: list[str] = NO_ROLES,
    session: str = "",
    read_only: bool = False,
    no_web: bool = False,
) -> Caller:
    """The caller that the options describe."""
    return msgspec.structs.replace(
        caller_of(tenant, agent, user=user, json=json),
        persona=persona,
        roles=tuple(roles),
        session=session,
        context=Context(read_only=read_only, no_web=no_web),
    )


def query_of(caller: Caller) -> dict[str, Any]:
    """The caller, as a server is asked about it."""
    return {
        "tenant": caller.tenant,
        "agent": caller.agent,
        "user": caller.user,
        "persona": caller.persona,
        "role": ",".join(caller.roles),
        "session": caller.session,
        "read_only": caller.context.read_only,
        "no_web": caller.context.no_web,
    }


def options_of(caller: Caller) -> list[str]:
    """The options that describe this caller; what is usual is left out."""
    given = (
        ("--tenant", caller.tenant if caller.tenant != TENANT else ""),
        ("--agent", caller.agent if caller.agent != AGENT else ""),
        ("--user", caller.user),
        ("--persona", caller.persona),
        *(("--role", role) for role in caller.roles),
        ("--session", caller.session),
    )
    options = [part for pair in given if pair[1] for part in pair]
    flags = (("--read-only", caller.context.read_only), ("--no-web", caller.context.no_web))
    return [*options, *(name for name, is_set in flags if is_set)]


def parse_args(text: str, *, json: bool) -> dict[str, Any]:
    """The arguments, or wrong usage."""
    try:
        return parse_object(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise usage(f'--args {error}. Write --args \'{{"text": "hi"}}\'.', json=json) from None
