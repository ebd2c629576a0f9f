"""What single links of the chain cost when nothing is wrong. `python -m benchmarks.links`.

Each stands alone around a handler that answers at once; what that costs is taken off.
"""

import asyncio
import sys

import msgspec

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, cpu_us, options, report
from toolgate import Call, Output, tool
from toolgate.executor.extension import Extension
from toolgate.executor.resilience.breaking import Breaking
from toolgate.executor.resilience.bulkhead import Bulkhead
from toolgate.executor.resilience.deadline import Deadline
from toolgate.executor.resilience.retry import Retry
from toolgate.ledger.machine import Slot, Start, Submit, step
from toolgate.ledger.state import State
from toolgate.testing.house import in_memory

ALONE = "handler alone"
CLAIM = "claim, by the machine alone"
LINKS: dict[str, Extension] = {
    "deadline": Deadline(),
    "retry, not asked for": Retry(),
    "breaker": Breaking(),
    "bulkhead": Bulkhead(),
}
# A link of the resilience kind has at most this; 5 µs is what each governed link may take.
LIMITS = {
    "deadline": 2.0,
    "retry, not asked for": 0.5,
    "breaker": 5.0,
    "bulkhead": 2.0,
    CLAIM: 5.0,
}


async def made() -> Call:
    """A call as the executor makes it, with all the time there is."""
    seen: list[Call] = []

    @tool(effect="pure")
    async def look(call: Call) -> None:
        seen.append(call)

    async with in_memory(look) as house:
        await house.call("look", caller=CALLER)
    return msgspec.structs.replace(seen[0], until_ns=2**62)


async def rows() -> list[Row]:
    call = await made()
    output = Output(status="success", data=3, call_id=call.id)

    async def answer(_call: Call) -> Output:
        return output

    handlers = {ALONE: answer} | {name: one.link(answer) for name, one in LINKS.items()}

    async def claim() -> Output:
        slot = Slot(state=State.RECEIVED, digest="d")
        taken = step(slot, Submit(digest="d", lease_ns=1), 0)
        step(taken.slot, Start(taken.slot.fence), 0)
        return output

    calls = {name: (lambda handler=handler: handler(call)) for name, handler in handlers.items()}
    found = await cpu_us(calls | {CLAIM: claim}, rounds=11)
    floor = found[ALONE].value or 0.0
    return [
        found[ALONE],
        *(
            Row(name=name, value=(found[name].value or 0.0) - floor, note="beyond the handler")
            for name in (*LINKS, CLAIM)
        ),
    ]


def main() -> int:
    chosen = options("What single links of the chain cost.").parse_args()
    found = asyncio.run(rows())
    best = {row.name: row.value for row in found}
    bars = [
        Bar(name=name, value=best[name], limit=limit, unit="µs") for name, limit in LIMITS.items()
    ]
    return report("Links", found, bars, baseline=ALONE, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
