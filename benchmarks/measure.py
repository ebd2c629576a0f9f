"""How things are measured: CPU per call, wall time, memory, and the table they are printed in.

CPU time is the measure for CPU budgets: wall time on a shared machine tells more about its
neighbours. Not here: what is measured (the other files), and what is promised (their bars).
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

Call: TypeAlias = Callable[[], Awaitable[object]]
TURN = 256
SETTLE_SECONDS = 0.2
_FEWEST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table. `value` is None when the thing was not run; `note` then says why."""

    name: str
    value: float | None = None
    unit: str = "µs"
    median: float | None = None
    answered: float | None = None  # how much of it was spent before the answer
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A promise: `value` is at most `limit`. What could not be measured has not passed."""

    name: str
    value: float | None
    limit: float
    unit: str

    @property
    def passed(self) -> bool:
        return self.value is not None and self.value <= self.limit


def here(limit: float, floor: float | None, then: float) -> float:
    """A bar as it holds on this machine: set where the floor took `then`, it is no more on a faster
    machine and in proportion more on a slower one.
    """
    return limit if floor is None else limit * max(floor / then, 1.0)


@contextmanager
def quiet_gc() -> Generator[None]:
    """Collect now, then keep the collector out of the measured stretch."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def _spend(call: Call, times: int) -> tuple[float, float]:
    """CPU seconds for `times` calls: all that they cause in the process; this thread's until then.

    Two things keep it honest. A call that never waits would keep the loop from everything else,
    which no server's loop does: now and then the others get their turn. And what is put off until
    after the answer (a writer's thread) is waited for, so that it is paid here and not by whoever
    is measured next.
    """
    process, thread = time.process_time(), time.thread_time()
    for number in range(times):
        await call()
        if number % TURN == 0:
            await asyncio.sleep(0)
    answered = time.thread_time() - thread
    await asyncio.sleep(SETTLE_SECONDS)
    return time.process_time() - process, answered


async def _calibrate(call: Call, seconds: float) -> int:
    """How many calls fill about `seconds` of CPU once they are warm.

    The first ones load what they need. Were they counted, rounds would be so short that what
    happens once a round, such as the writer's commit, would look like part of each call.
    """
    await _spend(call, _FEWEST)
    times = _FEWEST
    while (spent := (await _spend(call, times))[1]) < seconds / 4:
        times *= 2
    return max(_FEWEST, int(times * seconds / spent))


async def cpu_us(
    calls: Mapping[str, Call], *, rounds: int = 21, seconds: float = 0.04
) -> dict[str, Row]:
    """CPU µs per call: the best of `rounds`, and their median.

    Rounds are interleaved (one of each, then again), so that a machine that slows down slows
    all of them and ratios stay true.
    """
    times = {name: await _calibrate(call, seconds) for name, call in calls.items()}
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            with quiet_gc():
                process, answered = await _spend(call, times[name])
            spent[name].append((process / times[name] * 1e6, answered / times[name] * 1e6))
    return {name: _row(name, took) for name, took in spent.items()}


def _row(name: str, took: Sequence[tuple[float, float]]) -> Row:
    process = [one for one, _ in took]
    answered = min(one for _, one in took)
    return Row(
        name=name,
        value=min(process),
        median=statistics.median(process),
        answered=answered,
    )


def wall_ms(function: Callable[[], object], *, repeats: int = 7) -> list[float]:
    """Wall milliseconds of each of `repeats` runs of a synchronous callable, in order."""
    took: list[float] = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        took.append((time.perf_counter() - started) * 1e3)
    return took


@dataclass(slots=True)
class Stretch:
    """What one stretch of code took; filled when its `with` block ends."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0


@contextmanager
def stretch() -> Generator[Stretch]:
    """CPU and wall time of a block, with the collector kept out."""
    took = Stretch()
    with quiet_gc():
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield took
        finally:
            took.cpu_ms = (time.process_time() - cpu) * 1e3
            took.wall_ms = (time.perf_counter() - wall) * 1e3


def _status_kb(field: str, pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise LookupError(f"process {pid} has no {field}")
    return int(found[1])


def rss_bytes(pid: int | None = None) -> int:
    """Resident memory now."""
    return _status_kb("VmRSS", pid or os.getpid()) * 1024


def peak_bytes(pid: int | None = None) -> int:
    """The most resident memory so far, since the start or the last `reset_peak`."""
    return _status_kb("VmHWM", pid or os.getpid()) * 1024


def reset_peak() -> None:
    """Let `peak_bytes` start again from the present."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="utf-8").split():
            found += family(int(child))
    return found


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _line(row: Row, base: float | None) -> tuple[str, ...]:
    if row.value is None:
        return (row.name, "-", "", "", "", "", f"not run: {row.note}")
    return (
        row.name,
        _figure(row.value),
        _figure(row.median),
        _figure(row.answered),
        row.unit,
        _figure(row.value / base if base else None),
        row.note,
    )


def print_table(title: str, rows: Sequence[Row], *, baseline: str | None = None) -> None:
    """The rows, with their ratio to the row named `baseline`."""
    base = next((row.value for row in rows if row.name == baseline), None)
    ratio = f"x {baseline}" if baseline else ""
    answered = "till answer" if any(row.answered is not None for row in rows) else ""
    lines = [("", "best", "median", answered, "", ratio, "")]
    lines += [_line(row, base) for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(7)]
    left = {0, 4, 6}
    print(f"\n{title}")
    for line in lines:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            if width
        )
        print("  ".join(cells).rstrip())


def options(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    return parser


def report(
    title: str,
    rows: Sequence[Row],
    bars: Sequence[Bar],
    *,
    baseline: str | None = None,
    as_json: bool = False,
) -> int:
    """Print everything; the exit code is 1 when a bar fails."""
    if as_json:
        document = {
            "title": title,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "baseline": baseline,
            "rows": [asdict(row) for row in rows],
            "bars": [asdict(bar) | {"passed": bar.passed} for bar in bars],
        }
        json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        print_table(title, rows, baseline=baseline)
        for bar in bars:
            verdict = "PASS" if bar.passed else "FAIL"
            shown = f"{_figure(bar.value)} {bar.unit}" if bar.value is not None else "not measured"
            print(f"{verdict}  {bar.name}: {shown} (at most {bar.limit:g})")
    return 0 if all(bar.passed for bar in bars) else 1
