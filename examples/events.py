"""Who hears what happens: the turn that a call belongs to, and whoever subscribes."""

import asyncio

from toolgate import Caller, ToolError, Toolgate, Turn, tool


@tool(effect="irreversible")
async def send(to: str) -> str:
    """Send a letter."""
    if to == "nobody":
        raise ToolError("There is no such person.")
    return f"sent to {to}"


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(send)
        me = Caller(tenant="acme", agent="post")
        events = gate.events(tenant="acme")
        turn = Turn(group="t-1", emit=lambda event: print("turn:", event.kind))
        await gate.call("send", {"to": "bob"}, caller=me, turn=turn)
        await gate.call("send", {"to": "nobody"}, caller=me)
    # The house is closed: what was held can be read, and then it is over.
    async for event in events:
        print("subscriber:", event.kind, event.payload["args"])


asyncio.run(main())
