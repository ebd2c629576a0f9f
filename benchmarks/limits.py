"""What limits cost a call: the limiter and the budget, each alone around nothing, in memory.

Run it with `python -m benchmarks.limits`. Nothing else is in the chain, and nothing is written: the
figures are what the two links add to a call, beside the same call without them.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import MappingProxyType

from benchmarks.measure import Bar, Row, cpu_us, options, report
from toolgate import clock
from toolgate.call import Call, Grant, Output
from toolgate.caller import Caller
from toolgate.executor.extension import Handler
from toolgate.executor.limits.budget import Budget
from toolgate.executor.limits.purses import Purses
from toolgate.executor.limits.rate import Rate, usual
from toolgate.spec.cost import CALLS
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec
from toolgate.tenancy.world import Tenant, World
from toolgate.testing.budgets import MemoryBudgets

AT_MOST_US = 5.0
BARE = "nothing around it"
LIMITED = "one rate limit"
FREE = "no rate limit"
SPENT = "a budget"
COUNTED = "no budget, counted"
_CALLER = Caller(tenant="acme", agent="bench", persona="clerk")
_SPEC = ToolSpec(name="add", effect=Effect.PURE)


async def _tool(call: Call) -> Output:
    return Output(status="success", data=3, call_id=call.id)


def _calling(chain: Handler) -> Callable[[], Awaitable[object]]:
    # As the gate and the executor make them; only they may, and this measures neither.
    grant = Grant(_CALLER, _SPEC, 1, 1, needs_a_person=False)
    call = Call("call_1", grant, {}, None, clock.unix_ns(), 1 << 62)
    return lambda: chain(call)


async def _measured() -> list[Row]:
    tenant = Tenant(budgets=MappingProxyType({CALLS: 10**18}))
    world = World(tenants=MappingProxyType({"acme": tenant}))
    nobody = World()
    purses, counting = Purses(MemoryBudgets()), Purses(MemoryBudgets())
    purses.start()
    counting.start()
    links = {
        FREE: Rate(lambda: nobody),
        LIMITED: Rate(lambda: nobody, usual=usual(tenant="900000000/second")),
        COUNTED: Budget(counting, lambda: nobody, default_plan="enterprise"),
        SPENT: Budget(purses, lambda: world, default_plan="free"),
    }
    calls = {BARE: _calling(_tool)} | {
        name: _calling(link.link(_tool)) for name, link in links.items()
    }
    rows = await cpu_us(calls)
    await purses.close()
    await counting.close()
    return list(rows.values())


def main() -> int:
    chosen = options("What the limiter and the budget add to a call.").parse_args()
    rows = asyncio.run(_measured())
    found = {row.name: row.value for row in rows}
    bare = found[BARE] or 0.0
    bars = [
        Bar(
            name=f"{name}, beside nothing", value=(found[name] or 0.0) - bare, limit=most, unit="µs"
        )
        for name, most in (
            (LIMITED, AT_MOST_US),
            (SPENT, AT_MOST_US),
            (FREE, 1.0),
            (COUNTED, 1.0),
        )
    ]
    return report("CPU per call", rows, bars, baseline=BARE, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
