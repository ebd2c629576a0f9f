"""`toolgate explain NAME --agent A`: every phase's verdict, and what would change it."""

from typing import Annotated

import msgspec
import typer

from toolgate.bootstrap import Toolgate
from toolgate.cli import show
from toolgate.cli.session import AGENT, TENANT, Agent, Config, Json, Tenant, caller_of, with_gate
from toolgate.gate.decision import Explanation

app = typer.Typer(add_completion=False, help="Say why an agent may, or may not, call a tool.")


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    config: Config = None,
    tenant: Tenant = TENANT,
    agent: Agent = AGENT,
    json: Json = False,
) -> None:
    """Say why an agent may, or may not, call a tool."""
    caller = caller_of(tenant, agent, json=json)

    async def work(gate: Toolgate) -> Explanation:
        return gate.explain(name, caller=caller)

    found = with_gate(config, work, json=json)
    if json:
        show.as_json(msgspec.to_builtins(found))
    else:
        may = "may" if found.allowed else "may not"
        show.line(f"Agent {agent} of {tenant} {may} call {name}: {found.deciding.reason}.")
        show.table(
            ("phase", "verdict", "rule", "reason"),
            [
                (one.phase, "yes" if one.allowed else "no", one.rule, one.reason)
                for one in found.verdicts
            ],
        )
        if found.deciding.remedy and not found.allowed:
            show.line(f"To allow it: {found.deciding.remedy}")
    if not found.allowed:
        raise typer.Exit(1)
