"""`toolgate stdio`: an MCP server for the program that starts it, on standard input and output."""

import asyncio
import os
from contextlib import AsyncExitStack
from typing import Annotated, Any

import typer

from toolgate.bootstrap import Toolgate
from toolgate.caller import Caller
from toolgate.cli import log
from toolgate.cli.given import standard_input
from toolgate.cli.session import AGENT, TENANT, Agent, Config, Json, Tenant, ending, load
from toolgate.errors import InvalidRequest, Unauthenticated
from toolgate.server.auth import Door, caller_of
from toolgate.server.mcp.answering import Answering
from toolgate.server.mcp.lines import MOST, Lines
from toolgate.server.rights import Right, may, not_for
from toolgate.settings.settings import Settings
from toolgate.tenancy.first import USER, first_agent
from toolgate.tenancy.keys import Key, Role

KEY = "TOOLGATE_KEY"
app = typer.Typer(add_completion=False, help="Serve MCP on standard input and output.")


@app.command()
def stdio(
    config: Config = None,
    tenant: Tenant = TENANT,
    agent: Agent = AGENT,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", help="The user that the agent acts for; for the first agent, its owner."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Serve MCP on standard input and output.

    With a key in TOOLGATE_KEY, for whom the key stands for; else for the tenant and agent named.
    """
    handler = log.to_stderr()
    with ending(json=json):
        settings = load(config)
        log.follow(handler, settings.telemetry)
        if user is None:
            # Of others it is known whom they act for, or that they act for nobody.
            user = USER if (tenant, agent) == (TENANT, AGENT) else ""
        asyncio.run(_serve(settings, Caller(tenant=tenant, agent=agent, user=user)))


async def _serve(settings: Settings, caller: Caller) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log.unhandled)
    async with Toolgate.open(settings) as gate:
        await first_agent(gate.tenancy)
        key, caller = await _who(gate, caller)
        answering = Answering(
            gate,
            expose_tools=settings.mcp.expose_tools,
            task_after=settings.mcp.task_after,
        )
        # Whatever a tool prints must not get between the messages.
        out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        lines = Lines(answering, key, caller, lambda message: _write(out, message))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(answering.close, settings.server.drain)
            await lines.run(await standard_input(stack, limit=MOST))


async def _who(gate: Toolgate, caller: Caller) -> tuple[Key, Caller]:
    secret = os.environ.pop(KEY, "")
    if secret:
        door = Door(lambda: gate.tenancy.world)
        try:
            key = await door.verified(f"Bearer {secret}".encode("utf-8", "replace"))
        except Unauthenticated:
            raise Unauthenticated(
                f"The key in {KEY} opens nothing: set a valid one, or none and name the tenant and "
                "agent."
            ) from None
        if not may(key, Right.CALL):
            raise not_for(key)
        return key, caller_of(key)
    if caller.agent and caller.agent not in gate.tenancy.world.tenant(caller.tenant).capsules:
        raise InvalidRequest(
            f"There is no agent {caller.agent!r} of tenant {caller.tenant!r}: add it with "
            f"toolgate agents set {caller.agent} --tenant {caller.tenant}"
        )
    key = Key(
        id="",
        digest="",
        role=Role.AGENT,
        tenant=caller.tenant,
        agent=caller.agent,
        user=caller.user,
    )
    return key, caller


def _write(out: Any, message: bytes) -> None:
    """A whole line. Who started us and reads no more has ended us."""
    rest = memoryview(message + b"\n")
    while rest:
        try:
            rest = rest[out.write(rest) :]
        except BrokenPipeError:
            return
