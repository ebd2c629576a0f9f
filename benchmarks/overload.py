"""Five times as many calls as can be served: how much good work is left, and how soon it recovers.

Run it with `python -m benchmarks.overload`. The tool waits a twentieth of a second, so that the
places of the bulkhead are what is short and not the CPU. Goodput is the share of what the same
places serve when nobody comes in vain.
"""

import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, options, report
from toolgate import Toolgate, ToolgateError, tool
from toolgate.settings.execution import Limits
from toolgate.settings.settings import Settings, Store

PLACES, SERVICE, TIMES, SECONDS = 16, 0.05, 5, 6.0
# One tool has half of the places.
CAPACITY = PLACES / 2 / SERVICE


@tool(effect="pure", timeout=1.0)
async def work() -> str:
    """Wait as for somebody else's answer."""
    await asyncio.sleep(SERVICE)
    return "done"


async def _served(gate: Toolgate) -> bool:
    try:
        return (await gate.call("work", caller=CALLER)).ok
    except ToolgateError:
        return False


async def saturated(gate: Toolgate) -> float:
    """What the places serve a second when each is always taken, and nobody waits."""
    until = time.monotonic() + SECONDS / 2

    async def one() -> int:
        done = 0
        while time.monotonic() < until:
            done += await _served(gate)
        return done

    return sum(await asyncio.gather(*(one() for _ in range(PLACES // 2)))) / (SECONDS / 2)


async def overloaded(gate: Toolgate) -> tuple[float, float]:
    """What is served a second under too much load, and seconds until a call is served after it."""
    tasks: list[asyncio.Task[bool]] = []
    began = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - began) < SECONDS:
        due = int(passed * CAPACITY * TIMES)
        tasks += [asyncio.create_task(_served(gate)) for _ in range(due - sent)]
        sent = due
        await asyncio.sleep(0.005)
    over = time.monotonic()
    while not await _served(gate):  # noqa: ASYNC110  that it recovers can only be tried
        await asyncio.sleep(0.01)
    recovered = time.monotonic() - over
    return sum(await asyncio.gather(*tasks)) / (time.monotonic() - began), recovered


async def rows() -> list[Row]:
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        settings = Settings(
            root=Path(folder),
            store=Store(url=f"sqlite:///{Path(folder) / 'toolgate.db'}"),
            limits=Limits(concurrency=PLACES, waiting=1_000),
        )
        async with Toolgate.open(settings) as gate:
            gate.add(work)
            usual = await saturated(gate)
            served, recovered = await overloaded(gate)
    return [
        Row(name="served, nobody waits", value=usual, unit="/s"),
        Row(name=f"served, {TIMES} times too many", value=served, unit="/s"),
        # A bar is an upper bound, so what is lost stands here, not what is left.
        Row(name="lost", value=max(1 - served / usual, 0.0), unit=""),
        Row(name="recovered after", value=recovered, unit="s"),
    ]


def main() -> int:
    chosen = options("What is left of the work under five times the load.").parse_args()
    found = asyncio.run(rows())
    best = {row.name: row.value for row in found}
    bars = [
        Bar(name="goodput lost", value=best["lost"], limit=0.2, unit=""),
        Bar(name="recovered after", value=best["recovered after"], limit=30.0, unit="s"),
    ]
    return report("Overload", found, bars, baseline="served, nobody waits", as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
