"""A call whose end nobody saw: it is not repeated by itself, and an operator settles it."""

import asyncio

from toolgate import Caller, Toolgate, Turn, tool


@tool(effect="irreversible", timeout=0.05)
async def send_parcel(item: str) -> str:
    """Hand a parcel to the carrier."""
    await asyncio.Event().wait()  # a carrier that never answers
    return item


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(send_parcel)
        me, turn = Caller(tenant="acme", agent="shop"), Turn(group="t-18")
        first = await gate.call("send_parcel", {"item": "book"}, caller=me, turn=turn)
        print("first: ", first.status)
        again = await gate.call("send_parcel", {"item": "book"}, caller=me, turn=turn)
        print("again: ", again.status, "| from the record:", again.cached)

        await gate.settling.settle(
            "acme", first.call_id, happened=True, who="ann", why="the carrier has it"
        )
        after = await gate.call("send_parcel", {"item": "book"}, caller=me, turn=turn)
        print("after: ", after.status, "| from the record:", after.cached)


asyncio.run(main())
