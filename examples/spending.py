"""What a month holds, and what a call takes from it."""

import asyncio

from toolgate import Caller, CallRefused, Toolgate, tool
from toolgate.executor.limits.budget import budget_gate


@budget_gate(metric="money", amount="$args.amount")
@tool(effect="irreversible")
async def pay(invoice: str, amount: float) -> str:
    """Pay an invoice."""
    return f"paid {invoice}"


@tool(effect="pure", costs={"rows": "$result.rows"}, rate_limit="2/hour")
async def query(table: str) -> dict[str, int]:
    """Count the rows of a table."""
    return {"rows": len(table)}


async def main() -> None:
    async with Toolgate.open() as gate:
        gate.add(pay, query)
        me = Caller(tenant="spender", agent="billing")
        await gate.tenancy.set_plan("spender", "team")
        await gate.tenancy.set_budget("spender", "money", 100)
        for tool_name, args in (
            ("pay", {"invoice": "a", "amount": 80}),
            ("pay", {"invoice": "b", "amount": 30}),
            ("query", {"table": "orders"}),
            ("query", {"table": "orders"}),
            ("query", {"table": "orders"}),
        ):
            try:
                print((await gate.call(tool_name, args, caller=me)).data)
            except CallRefused as refused:
                print(refused.code)
        for line in await gate.usage.lines(tenant="spender"):
            print(line.metric, line.used, "of", line.limit)


asyncio.run(main())
