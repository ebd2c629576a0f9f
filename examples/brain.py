"""A brain that plans calls by rules: newer messages come first, and a person agrees first."""

import asyncio
from typing import Any

from toolgate import Caller, Output, Toolgate, Turn, tool


@tool(effect="pure")
async def find_order(customer: str) -> dict[str, str]:
    """Find a customer's order."""
    return {"order": f"order-of-{customer}"}


@tool(effect="irreversible")
async def ship_order(order: str) -> str:
    """Ship an order."""
    return f"{order} is on its way"


@tool(effect="irreversible", requires_confirmation=True, confirmation_prompt="Refund it?")
async def refund(order: str) -> str:
    """Give the money back."""
    return f"{order} is refunded"


class Brain:
    """Decides what to call. Whether it may, and whether it already did, the gate knows."""

    def __init__(self, gate: Toolgate) -> None:
        self.gate = gate
        self.inbox: list[str] = []

    async def turn(self, group: str, plan: list[dict[str, Any]]) -> list[Output]:
        """One attempt at an answer. What was done in the same group is not done again."""
        turn = Turn(group=group, has_pending_messages=lambda: bool(self.inbox))
        box = self.gate.toolbox(ANN, turn)
        for planned in plan:
            known = box.metadata(planned["tool"])
            if known and known.is_irreversible and known.requires_confirmation:
                print(f"  {known.name} will wait for a person")
        outputs = (await box.batch(plan)).outputs
        for planned, output in zip(plan, outputs, strict=True):
            again = " (on record)" if output.cached else ""
            print(f"  {planned['tool']}: {output.status}{again}")
        return list(outputs)


ANN = Caller(tenant="acme", agent="support", user="ann")
SHIP = [
    {"tool": "find_order", "args": {"customer": "bob"}, "bound_rule_id": "r-1"},
    {"tool": "ship_order", "args": {"order": "order-of-bob"}, "bound_rule_id": "r-1"},
]
REFUND = [{"tool": "refund", "args": {"order": "order-of-bob"}, "bound_rule_id": "r-2"}]


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(find_order, ship_order, refund)
        brain = Brain(gate)

        print("A message arrives before the order is shipped:")
        brain.inbox.append("wait, to another address!")
        await brain.turn("t-1", SHIP)

        print("It was read; the next attempt of the same turn ships, and a repeated one does not:")
        brain.inbox.clear()
        await brain.turn("t-1", SHIP)
        await brain.turn("t-1", SHIP)

        print("A refund needs a yes, and is then made once:")
        [pending] = await brain.turn("t-2", REFUND)
        if pending.error is not None:
            await gate.approvals.approve(pending.error.details["approval_id"], by=ANN)
        await brain.turn("t-2", REFUND)


asyncio.run(main())
