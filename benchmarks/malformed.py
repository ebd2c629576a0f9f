"""How fast a malformed tool file is refused: `.venv/bin/python -m benchmarks.malformed`.

The files are those of `tests/spec/malformed.py`, which draws them with hypothesis: this is the one
benchmark that needs what the tests need.
"""

import statistics
import sys
import time
from collections.abc import Sequence

from benchmarks.measure import Bar, Row, options, quiet_gc, report
from tests.spec.malformed import Malformed, malformed
from toolgate.errors import InvalidSpecs
from toolgate.sources.text import parse
from toolgate.spec.reader import read_tools
from toolgate.spec.tool import Origin

LIMIT_MS = 100.0
REPEATS = 3
SLOWEST = 8


def refuse(file: Malformed) -> None:
    """What a source does with the bytes of a file."""
    try:
        text = parse(file.raw, file=file.name)
        origin = Origin("file", file.name)
        read_tools(text.value, file=file.name, origin=origin, line_of=text.line_of)
    except InvalidSpecs:
        return
    raise ValueError(f"a file that is wrong was taken ({file.kind})")


def took_ms(file: Malformed) -> float:
    """CPU milliseconds until it is refused: the best of a few."""
    took: list[float] = []
    for _ in range(REPEATS):
        started = time.process_time()
        refuse(file)
        took.append((time.process_time() - started) * 1e3)
    return min(took)


def by_kind(files: Sequence[Malformed], took: Sequence[float]) -> list[Row]:
    """The kinds that take longest, each with its slowest file."""
    kinds: dict[str, list[float]] = {}
    for file, ms in zip(files, took, strict=True):
        kinds.setdefault(file.kind, []).append(ms)
    slowest = sorted(kinds.items(), key=lambda kind: -max(kind[1]))[:SLOWEST]
    return [
        Row(
            name=name,
            value=max(found),
            median=statistics.median(found),
            unit="ms",
            note=f"CPU; the slowest of {len(found)}",
        )
        for name, found in slowest
    ]


def main() -> int:
    chosen = options("How fast a malformed tool file is refused.").parse_args()
    files = malformed()
    with quiet_gc():
        took = [took_ms(file) for file in files]
    every = Row(
        name=f"{len(files)} malformed files",
        value=max(took),
        median=statistics.median(took),
        unit="ms",
        note="CPU; the slowest of all",
    )
    bars = (Bar(name="refused, the slowest", value=max(took), limit=LIMIT_MS, unit="ms"),)
    return report("Malformed files", [every, *by_kind(files, took)], bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
