"""Who sees what: a flag for a tenant, a capsule for an agent, and what an agent lacks."""

import asyncio

from toolgate import Caller, Toolgate
from toolgate.settings.settings import Settings, Tools


async def main() -> None:
    settings = Settings(tools=Tools(builtin=("echo", "read_output", "timestamp")))
    async with Toolgate.open(settings) as gate:
        # One tenant has no use for `timestamp`.
        await gate.tenancy.set_tenant_tool("other", "timestamp", enabled=False)

        # This agent starts from nothing and is given one tool.
        await gate.tenancy.set_agent("acme", "clerk", mode="listed")
        await gate.tenancy.activate("acme", "clerk", "echo")

        for tenant, agent in (("acme", "boss"), ("acme", "clerk"), ("other", "boss")):
            caller = Caller(tenant=tenant, agent=agent)
            specs = await gate.discover(caller)
            print(f"{agent} of {tenant} may call:", *(spec.name for spec in specs))

        box = gate.toolbox(Caller(tenant="acme", agent="clerk"))
        for missing in box.unavailable():
            print(f"clerk lacks {missing.name}: {missing.reason}")


asyncio.run(main())
