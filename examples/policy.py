"""A policy that looks back: only what this session has looked up may be refunded, and once."""

import asyncio
import tempfile
from pathlib import Path

from toolgate import Caller, CallRefused, Toolgate, tool

POLICIES = Path(__file__).parent / "policies" / "refund-only-what-was-looked-up"


@tool(effect="pure")
async def get_order(order_id: str) -> dict[str, int]:
    """Look an order up."""
    return {"cents": 4_200}


@tool(effect="irreversible")
async def refund_order(order_id: str) -> str:
    """Pay an order back."""
    return f"{order_id} is paid back"


async def main(settings: Path) -> None:
    async with Toolgate.open(settings) as gate:
        gate.add(get_order, refund_order)
        agent = Caller(tenant="acme", agent="support", session="s-1")

        async def refund(order_id: str) -> None:
            try:
                output = await gate.call("refund_order", {"order_id": order_id}, caller=agent)
                print(output.to_human())
            except CallRefused as refused:
                print(f"{refused.code}: {refused.details['reason']}")

        await refund("A-9")
        await gate.call("get_order", {"order_id": "A-1"}, caller=agent)
        await refund("A-1")
        await refund("A-1")

        print("listed:", *(spec.name for spec in await gate.discover(agent)))
        why = await gate.explain("refund_order", caller=agent, args={"order_id": "A-9"})
        for verdict in why.verdicts:
            print(f"{verdict.phase:9} {verdict.rule:8} {verdict.allowed!s:5} {verdict.reason}")


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "toolgate.toml")
    file.write_text(f'[tools]\nbuiltin = []\n[policy]\npath = "{POLICIES}"\n', "utf-8")
    asyncio.run(main(file))
