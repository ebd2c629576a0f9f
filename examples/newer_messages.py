"""Newer messages before a call that cannot be taken back: each agent has its own way."""

import asyncio

from toolgate import Caller, Toolgate, Turn, tool


@tool(effect="irreversible", idempotency_key=["order"])
async def ship(order: str) -> str:
    """Ship an order."""
    return f"{order} is on its way"


class Conversation:
    """Messages come in while a turn is at work."""

    def __init__(self) -> None:
        self.inbox = ["to my new address, please"]
        self.read: list[str] = []

    def has_pending_messages(self) -> bool:
        return bool(self.inbox)

    async def absorb_messages(self) -> None:
        self.read += self.inbox
        self.inbox.clear()


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(ship)
        me = Caller(tenant="acme", agent="shop")
        for policy in ("supersede", "absorb", "force_complete", "queue"):
            await gate.tenancy.set_newer_messages("acme", "shop", policy)
            talk = Conversation()
            turn = Turn(
                group=f"t-{policy}",
                has_pending_messages=talk.has_pending_messages,
                absorb_messages=talk.absorb_messages,
            )
            output = await gate.call("ship", {"order": "A-1"}, caller=me, turn=turn)
            print(f"{policy}: {output.status}; read {len(talk.read)}, waiting {len(talk.inbox)}")


asyncio.run(main())
