"""Refused, failed, not known: three different things, told apart."""

import asyncio

from toolgate import Caller, CallRefused, ToolError, Toolgate, tool

stock = {"apple": 0}


@tool(effect="idempotent")
async def reserve(item: str) -> dict[str, str]:
    """Reserve an item for the customer."""
    if not stock.get(item):
        raise ToolError(f"There are no {item}s left; offer something else.")
    return {"reserved": item}


@tool(effect="irreversible", timeout=0.05)
async def send_parcel(item: str) -> None:
    """Hand a parcel to the carrier."""
    await asyncio.Event().wait()  # a carrier that never answers


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(reserve, send_parcel)
        me = Caller(tenant="acme", agent="shop")
        try:
            await gate.call("reserve", {"colour": "red"}, caller=me)
        except CallRefused as refused:
            print("refused:", refused.code)
        failed = await gate.call("reserve", {"item": "apple"}, caller=me)
        print("failed: ", failed.status, "|", failed.to_human())
        unknown = await gate.call("send_parcel", {"item": "apple"}, caller=me)
        print("unknown:", unknown.status, "|", unknown.to_human())
        for entry in await gate.journal.entries("acme", limit=2):
            print("journal:", entry.tool, entry.state)


asyncio.run(main())
