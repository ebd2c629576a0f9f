"""What the sandbox adds to the program that makes it: `python -m benchmarks.sandbox`.

`echo` through the sandbox, and the same bubblewrap with the same mounts started by `subprocess`, by
turns, the one or the other first. Wall time, since most of it passes in the kernel: on a machine
with other work both are several times as long, and so is what is between them. What is computed
for a run hardly changes with that.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import uvloop

from benchmarks.measure import Bar, Row, options, report
from tests.servers.sandboxes import on_path
from toolgate.errors import ProviderUnavailable
from toolgate.sandbox import bubblewrap
from toolgate.sandbox.policy import MEMORY, PROCESSES, Policy
from toolgate.sandbox.programs import Programs
from toolgate.sandbox.roots import mounts
from toolgate.settings.outward import Sandbox as Settings

OURS, FLOOR = "toolgate", "bubblewrap alone"
ROUNDS = 100
AT_MOST_MS = 5.0
ECHO = ("echo", "hello")


class Took(NamedTuple):
    """Milliseconds of one run: on the clock, and of computing, here and in what was started."""

    wall: float
    computing: float


async def measured() -> dict[str, list[Took]] | str:
    """Round by round; or why there are none."""
    found = bubblewrap.found(Settings())
    if isinstance(found, str):
        return found
    sandbox, policy = Programs(found), Policy(memory=MEMORY, processes=PROCESSES)
    # Nothing is given to it, so nothing has to be opened for it.
    bare = [found.program, *found.words(ECHO, policy, "", mounts(policy), {}), "--", *ECHO]
    took: dict[str, list[Took]] = {OURS: [], FLOOR: []}
    try:
        await sandbox.run(ECHO, policy)
    except ProviderUnavailable as refused:
        return refused.message
    for number in range(ROUNDS):
        for name in (OURS, FLOOR) if number % 2 else (FLOOR, OURS):
            began, computed = time.perf_counter(), _computed()
            if name == OURS:
                await sandbox.run(ECHO, policy)
            else:
                subprocess.run(bare, capture_output=True, env={}, check=True)  # noqa: ASYNC221, S603
            wall = time.perf_counter() - began
            took[name].append(Took(wall * 1e3, (_computed() - computed) * 1e3))
    return took


def _computed() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _row(name: str, took: Sequence[Took]) -> Row:
    wall = [run.wall for run in took]
    computing = statistics.mean(run.computing for run in took)
    note = f"{computing:.1f} ms of computing a run"
    return Row(name=name, unit="ms", value=min(wall), median=statistics.median(wall), note=note)


def main() -> int:
    chosen = options("What the sandbox adds to the program that makes it.").parse_args()
    on_path()
    found = uvloop.run(measured())
    if isinstance(found, str):
        rows = [Row(name=name, unit="ms", note=found) for name in (OURS, FLOOR)]
        best = between = None
    else:
        rows = [_row(name, each) for name, each in found.items()]
        ours, floor = ([run.wall for run in found[name]] for name in (OURS, FLOOR))
        best = min(ours) - min(floor)
        between = statistics.median(a - b for a, b in zip(ours, floor, strict=True))
    bars = [
        Bar(
            name=f"echo, over bubblewrap's own start, {how}",
            value=more,
            limit=AT_MOST_MS,
            unit="ms",
        )
        for how, more in (("at best", best), ("median of rounds", between))
    ]
    return report("A program in the sandbox", rows, bars, baseline=FLOOR, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
