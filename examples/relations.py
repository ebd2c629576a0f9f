"""Relations: a tool is for its owners and executors, directly or through a group or an agent."""

import asyncio
import tempfile
from pathlib import Path

from toolgate import Caller, Toolgate, tool


@tool(effect="irreversible")
async def pay(invoice: str) -> None:
    """Pay an invoice."""


@tool(effect="pure")
async def invoices() -> list[str]:
    """List the invoices."""
    return ["I-1"]


async def main(settings: Path) -> None:
    async with Toolgate.open(settings) as gate:
        gate.add(pay, invoices)
        await gate.tenancy.by("ops:eve", "finance starts").relate(
            "acme",
            add=[
                "tool:pay#executor@group:finance#member",
                "group:finance#member@user:ann",
                "group:finance#member@team:audit#member",
                "team:audit#member@user:ben",
                "tool:invoices#owner@agent:clerk#user",
                "agent:clerk#user@user:cay",
            ],
        )
        for user in ("ann", "ben", "cay", "dan"):
            specs = await gate.discover(Caller(tenant="acme", agent="clerk", user=user))
            print(f"{user} may call:", *(spec.name for spec in specs))

        ben = Caller(tenant="acme", agent="clerk", user="ben")
        await gate.tenancy.relate("acme", remove=["team:audit#member@user:ben"])
        why = await gate.explain("pay", caller=ben)
        print("ben:", why.deciding.reason)
        print("to allow it:", *why.remedies)


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "toolgate.toml")
    file.write_text('[relations]\nengine = "store"\n', "utf-8")
    asyncio.run(main(file))
