"""A person is asked: the call waits, somebody agrees, and that very call runs once."""

import asyncio

from toolgate import Caller, Toolgate, ToolgateError, Turn, tool


@tool(effect="irreversible", requires_approval=True)
async def pay_invoice(invoice: str, amount: float) -> str:
    """Pay an invoice."""
    return f"{invoice} is paid"


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(pay_invoice)
        me = Caller(tenant="acme", agent="billing", user="ann")
        box = gate.toolbox(me, turn=Turn(group="t-1"))
        args = {"invoice": "R-17", "amount": 120.0}

        asked = await box.call("pay_invoice", args)
        print("first call:", asked.status)

        waiting = asked.error.details["approval_id"] if asked.error else ""
        try:
            await gate.approvals.approve(waiting, by=me)
        except ToolgateError as refused:
            print("the agent:", refused)
        await gate.approvals.approve(waiting, by="boss", reason="checked with purchasing")

        other = await box.call("pay_invoice", {"invoice": "R-17", "amount": 1200.0})
        print("another amount:", other.status)
        for again in ("the same call", "and once more"):
            output = await box.call("pay_invoice", args)
            print(f"{again}: {output.status} | {output.data} | on record: {output.cached}")

        for record in reversed(await gate.tenancy.audit(tenant="acme")):
            if record.change.startswith("approval."):
                print("audit:", record.change, "by", record.who, f"({record.why or 'no reason'})")


asyncio.run(main())
