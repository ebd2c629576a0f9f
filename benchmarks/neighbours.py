"""A tenant that asks for ten times what it may: what another one notices of it.

Run it with `python -m benchmarks.neighbours`. Rounds with the neighbour and without are
interleaved; times are of whole calls, as their caller waits for them.
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, options, report
from toolgate import Caller, Toolgate, ToolgateError, tool
from toolgate.settings.execution import Limits
from toolgate.settings.settings import Settings, Store

LIMIT, TIMES, RATE, SERVICE = 100, 10, 50, 0.005
ROUNDS, SECONDS = 7, 3.0
NOISY = Caller(tenant="noisy", agent="billing", user="ann")
QUIET, BESIDE = "the other tenant, alone", "the other tenant, beside it"


@tool(effect="pure")
async def work() -> str:
    """Wait as for somebody else's answer."""
    await asyncio.sleep(SERVICE)
    return "done"


async def _paced(gate: Toolgate, caller: Caller, rate: float) -> list[float | None]:
    """Milliseconds of each call that was served; nothing of one that was refused."""

    async def one() -> float | None:
        began = time.perf_counter()
        try:
            output = await gate.call("work", caller=caller)
        except ToolgateError:
            return None
        return (time.perf_counter() - began) * 1e3 if output.ok else None

    tasks: list[asyncio.Task[float | None]] = []
    began = time.monotonic()
    while (passed := time.monotonic() - began) < SECONDS:
        due = int(passed * rate) - len(tasks)
        tasks += [asyncio.create_task(one()) for _ in range(due)]
        await asyncio.sleep(0.002)
    return await asyncio.gather(*tasks)


def _p95(took: list[float | None]) -> float:
    served = sorted(one for one in took if one is not None)
    if len(served) < len(took):
        raise ValueError(f"{len(took) - len(served)} of {len(took)} calls were not served")
    return served[int(len(served) * 0.95)]


async def rows() -> list[Row]:
    alone: list[float] = []
    beside: list[float] = []
    let_through: list[float] = []
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        settings = Settings(
            root=Path(folder),
            store=Store(url=f"sqlite:///{Path(folder) / 'toolgate.db'}"),
            limits=Limits(tenant=f"{LIMIT}/second"),
        )
        async with Toolgate.open(settings) as gate:
            gate.add(work)
            await gate.tenancy.add_tenant(NOISY.tenant)
            for _ in range(ROUNDS):
                alone.append(_p95(await _paced(gate, CALLER, RATE)))
                took, noise = await asyncio.gather(
                    _paced(gate, CALLER, RATE), _paced(gate, NOISY, LIMIT * TIMES)
                )
                beside.append(_p95(took))
                let_through.append(sum(one is not None for one in noise) / SECONDS)
    return [
        Row(name=QUIET, value=min(alone), median=statistics.median(alone), unit="ms"),
        Row(name=BESIDE, value=min(beside), median=statistics.median(beside), unit="ms"),
        Row(
            name=f"let through of {LIMIT * TIMES}/s where {LIMIT}/s are allowed",
            value=statistics.median(let_through),
            unit="/s",
        ),
    ]


def main() -> int:
    chosen = options("What a tenant notices of another one's flood: p95 of its calls.").parse_args()
    found = asyncio.run(rows())
    median = {row.name: row.median for row in found}
    quiet, next_to = median[QUIET], median[BESIDE]
    ratio = next_to / quiet if quiet and next_to else None
    bars = [Bar(name="p95 beside a flood / alone, medians", value=ratio, limit=1.5, unit="x")]
    return report("Neighbours", found, bars, baseline=QUIET, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
