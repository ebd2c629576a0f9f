"""How the catalog bears many tools. Run it with `python -m benchmarks.catalog`.

Two parts, each in a process of its own so that neither stands on the other's memory: what a caller
waits for at 10,000 tools, and what 100,000 specs cost to load, list, look up and hold.
"""

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.embedded import CALLER, Echo, open_gate
from benchmarks.measure import (
    Bar,
    Row,
    Stretch,
    options,
    peak_bytes,
    quiet_gc,
    report,
    reset_peak,
    rss_bytes,
    stretch,
)
from benchmarks.rows import PROVIDER, many, specs_from
from toolgate import Toolgate

PART = "benchmarks"
TOOLS, SCALE, FEW = 10_000, 100_000, 100
COLD_MS, WARM_MS = 50.0, 1.0
REPEATS = 7
LOOK_UPS = 200_000
COLD, WARM = "discover, 10,000 tools, cold", "discover, 10,000 tools, warm"


async def _discovered(gate: Toolgate, least: int) -> Stretch:
    """One discover of the whole catalog, timed."""
    with stretch() as took:
        specs = await gate.discover(CALLER)
    if len(specs) < least:
        raise ValueError(f"discover gave {len(specs):,} tools of {least:,}")
    return took


def _row(name: str, took: Sequence[Stretch], note: str = "") -> Row:
    cpu = [one.cpu_ms for one in took]
    wall = statistics.median(one.wall_ms for one in took)
    return Row(
        name=name,
        value=min(cpu),
        median=statistics.median(cpu),
        unit="ms",
        note=f"CPU; wall {wall:.3g} ms" + (f"; {note}" if note else ""),
    )


async def _discover() -> list[Row]:
    given, about = many(TOOLS)
    specs = specs_from(given)
    cold: list[Stretch] = []
    warm: list[Stretch] = []
    for _ in range(REPEATS):
        # Each gate is a new one: nothing that an earlier caller warmed helps the cold figure.
        with TemporaryDirectory(prefix="toolgate-bench-") as folder:
            async with open_gate(Path(folder), {PROVIDER: Echo()}) as gate:
                gate.catalog.put(PART, specs)
                cold.append(await _discovered(gate, TOOLS))
                warm.append(await _discovered(gate, TOOLS))
    first = f"the first {cold[0].cpu_ms:.3g} ms"
    return [_row(COLD, cold, f"{first}; {about}"), _row(WARM, warm)]


def _look_up_ns(gate: Toolgate, names: Sequence[str]) -> float:
    """CPU ns of one look-up of these names, in no order: the best of several rounds."""
    get = gate.catalog.current.get
    asked = random.Random(7).choices(names, k=LOOK_UPS)  # noqa: S311 - not a secret
    best = float("inf")
    for _ in range(REPEATS):
        with quiet_gc():
            started = time.process_time()
            for name in asked:
                get(name)
            best = min(best, time.process_time() - started)
    return best / LOOK_UPS * 1e9


async def _scale() -> list[Row]:
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        async with open_gate(Path(folder), {PROVIDER: Echo()}) as gate:
            return await _loaded(gate)


async def _loaded(gate: Toolgate) -> list[Row]:
    given, about = many(SCALE)
    gate.catalog.put(PART, specs_from(given[:FEW]))
    few_ns = _look_up_ns(gate, [row.name for row in given[:FEW]])
    gate.catalog.put(PART, ())
    gc.collect()
    reset_peak()
    before = rss_bytes()

    with stretch() as reading:
        specs = specs_from(given)
    with stretch() as merging:
        gate.catalog.put(PART, specs)
    held, peak = rss_bytes() - before, peak_bytes() - before

    cold, warm = await _discovered(gate, SCALE), await _discovered(gate, SCALE)
    # As many names as before: the same names over and over, so that only the catalog has grown.
    names = [row.name for row in given]
    many_ns = _look_up_ns(gate, names[:: SCALE // FEW])
    all_ns = _look_up_ns(gate, names)
    named = f"{SCALE:,} specs, "
    return [
        Row(name=f"{named}read", value=reading.cpu_ms / 1e3, unit="s", note=f"CPU; {about}"),
        Row(name=f"{named}merged", value=merging.cpu_ms / 1e3, unit="s", note="CPU"),
        _row(f"{named}discover, cold", [cold]),
        _row(f"{named}discover, warm", [warm]),
        Row(name=f"look-up among {FEW}", value=few_ns, unit="ns", note="CPU"),
        Row(name=f"look-up among {SCALE:,}", value=many_ns, unit="ns", note=f"CPU; {FEW} of them"),
        Row(name="look-up, many / few", value=many_ns / few_ns, unit="x", note="1 is constant"),
        Row(name="look-up of all, at random", value=all_ns, unit="ns", note="CPU; cache misses"),
        Row(name="memory per spec, held", value=held / SCALE, unit="B", note="resident"),
        Row(name="memory per spec, peak", value=peak / SCALE, unit="B", note="while loading"),
    ]


def discover() -> list[Row]:
    return asyncio.run(_discover())


def scale() -> list[Row]:
    return asyncio.run(_scale())


def main() -> int:
    chosen = options("How the catalog bears many tools.").parse_args()
    rows: list[Row] = []
    for part in (discover, scale):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            rows += process.submit(part).result()
    found = {row.name: row.median for row in rows}
    bars = (
        Bar(name=f"{COLD}, median CPU", value=found[COLD], limit=COLD_MS, unit="ms"),
        Bar(name=f"{WARM}, median CPU", value=found[WARM], limit=WARM_MS, unit="ms"),
    )
    return report("Catalog", rows, bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
