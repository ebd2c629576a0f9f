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

    async def work(gate: Toolgate) -> tuple[Explanation, bool]:
        found = gate.explain(name, caller=caller)
        return found, found.allowed and (await gate.gate.decide(caller, name)).needs_a_person

    found, asks = with_gate(config, work, json=json)
    if json:
        show.as_json(msgspec.to_builtins(found) | {"needs_a_person": asks})
    else:
        may = f"may call {name}" if found.allowed else f"may not call {name}"
        may += ", and a person must approve each call" if asks else ""
        show.line(f"Agent {agent} of {tenant} {may}: {found.deciding.reason}.")
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
