"""One tool that reads, one that destroys, and an agent that may only read."""

import asyncio

from toolgate import Caller, Toolgate, ToolgateError, tool
from toolgate.settings.settings import Settings, Tools


@tool(effect="pure")
async def balance(account: str) -> dict[str, int]:
    """Read an account's balance, in cents."""
    return {"cents": 12_500}


@tool(effect="irreversible", destructive=True)
async def close_account(account: str) -> None:
    """Close an account for good."""


async def main() -> None:
    settings = Settings(tools=Tools(builtin=("echo",)))
    async with Toolgate.open(settings) as gate:
        gate.add(balance, close_account)
        await gate.tenancy.activate("acme", "reader", "close_account", enabled=False)
        reader = Caller(tenant="acme", agent="reader", user="ann")

        print("may call:", *(spec.name for spec in await gate.discover(reader)))
        output = await gate.call("balance", {"account": "A-1"}, caller=reader)
        print(output.status, output.data)
        for tool_name, args in (("balance", {"account": 1}), ("close_account", {"account": "A-1"})):
            try:
                await gate.call(tool_name, args, caller=reader)
            except ToolgateError as error:
                print(error)
        why = await gate.explain("close_account", caller=reader)
        print("why:", why.deciding.reason)


asyncio.run(main())
