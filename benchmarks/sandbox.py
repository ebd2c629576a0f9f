"""What the sandbox adds to the program that makes it: `python -m benchmarks.sandbox`.

`echo` through the sandbox, and the same bubblewrap with the same mounts started by `subprocess`, by
turns. Wall time, since most of it passes in the kernel.
"""

import asyncio
import statistics
import subprocess
import sys
import time

from benchmarks.measure import Bar, Row, options, report
from toolgate.sandbox import bubblewrap
from toolgate.sandbox.policy import MEMORY, PROCESSES, Policy
from toolgate.sandbox.programs import Programs
from toolgate.sandbox.roots import mounts
from toolgate.settings.outward import Sandbox as Settings

OURS, FLOOR = "toolgate", "bubblewrap alone"
ROUNDS = 100
AT_MOST_MS = 5.0
ECHO = ("echo", "hello")


async def measured() -> list[Row]:
    found = bubblewrap.found(Settings())
    if isinstance(found, str):
        return [Row(name=name, unit="ms", note=found) for name in (OURS, FLOOR)]
    sandbox, policy = Programs(found), Policy(memory=MEMORY, processes=PROCESSES)
    # Nothing is given to it, so nothing has to be opened for it.
    bare = [found.program, *found.words(ECHO, policy, "", mounts(policy), {}), "--", *ECHO]
    took: dict[str, list[float]] = {OURS: [], FLOOR: []}
    await sandbox.run(ECHO, policy)
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await sandbox.run(ECHO, policy)
        between = time.perf_counter()
        subprocess.run(bare, capture_output=True, env={}, check=True)  # noqa: ASYNC221, S603
        took[OURS].append((between - began) * 1e3)
        took[FLOOR].append((time.perf_counter() - between) * 1e3)
    return [
        Row(name=name, unit="ms", value=min(each), median=statistics.median(each))
        for name, each in took.items()
    ]


def main() -> int:
    chosen = options("What the sandbox adds to the program that makes it.").parse_args()
    found = asyncio.run(measured())
    took = {row.name: row.value for row in found}
    ours, floor = took[OURS], took[FLOOR]
    more = None if ours is None or floor is None else ours - floor
    bars = [Bar(name="echo, over bubblewrap's own start", value=more, limit=AT_MOST_MS, unit="ms")]
    return report("A program in the sandbox", found, bars, baseline=FLOOR, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
