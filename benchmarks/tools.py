"""What built-in tools cost, warm, through the whole house: `python -m benchmarks.tools`.

CPU of this process for one call; of the tools in `APART` also with that of the processes that
compute for them. A tool is a line of `MEASURED`, with the milliseconds that it may take; what it
reads is prepared in `_prepare`.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson
import uvloop

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Call, Row, cpu_us, family, options, report
from tests.servers.sandboxes import on_path
from toolgate import Toolgate
from toolgate.settings.settings import FOLDER, Settings

_LINE = "A line of an ordinary text file, as people write them.\n"


def _people(size: int) -> str:
    """So many characters of JSON, as an API gives records."""
    rows = [
        {
            "id": at,
            "name": f"user {at}",
            "email": f"user.{at}@mail.example.com",
            "age": at % 90,
            "active": at % 3 == 0,
            "address": {"street": f"{at} Main Street", "city": "Springfield", "zip": "04103"},
        }
        for at in range(size // 166)
    ]
    return orjson.dumps(rows).decode()


class Measured(NamedTuple):
    """A call, and how long it may take."""

    tool: str
    args: dict[str, Any]
    at_most_ms: float


MEASURED = {
    "calculate": Measured(
        "calculate",
        {"expression": "p * (1 + r/100)^n - sqrt(2)", "variables": {"p": 1000, "r": 3.5, "n": 10}},
        0.2,
    ),
    "statistics, 100 numbers": Measured("statistics", {"data": [0.5] * 50 + [7, 9] * 25}, 1.0),
    "python_eval": Measured("python_eval", {"expression": "sum(i * i for i in range(100))"}, 2.0),
    "read_file, 1 MB": Measured("read_file", {"path": "large.txt"}, 5.0),
    "json_query, 1 MB": Measured(
        "json_query", {"data": _people(1_000_000), "query": "[?age > `80`].name"}, 30.0
    ),
}


# Most of what these cost is spent elsewhere.
APART = ("python_eval", "json_query, 1 MB")
_TIMES = 200


def _prepare(root: Path) -> None:
    text = _LINE * (1_000_000 // len(_LINE) + 1)
    (root / FOLDER).mkdir()
    (root / FOLDER / "large.txt").write_text(text[:1_000_000], encoding="utf-8")


async def measured() -> dict[str, Row]:
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        root = Path(folder)
        _prepare(root)
        async with Toolgate.open(Settings(root=root)) as gate:
            calls = {name: _call(gate, one) for name, one in MEASURED.items()}
            found = await cpu_us(calls)
            for name in APART:
                whole = f"{name}, in all processes"
                found[whole] = Row(name=whole, value=await _everywhere_us(calls[name]))
            return found


async def _everywhere_us(call: Call) -> float:
    """As long as the same processes compute it: one that is replaced takes its figures along."""
    while True:
        before = _spent()
        for _ in range(_TIMES):
            await call()
        after = _spent()
        if before.keys() == after.keys():
            return sum(after[pid] - before[pid] for pid in after) / _TIMES / 1e3


def _spent() -> dict[int, int]:
    """Nanoseconds of CPU of this process and of all that it has started, thread by thread."""
    return {
        int(task.name): int((task / "schedstat").read_text("utf-8").split()[0])
        for pid in family(os.getpid())
        for task in Path(f"/proc/{pid}/task").iterdir()
    }


def _call(gate: Toolgate, one: Measured) -> Call:
    async def call() -> None:
        found = await gate.call(one.tool, one.args, caller=CALLER)
        assert found.ok, found

    return call


def main() -> int:
    chosen = options("What built-in tools cost, warm.").parse_args()
    on_path()
    found = uvloop.run(measured())
    bars = [
        Bar(name=name, value=_ms(found[name]), limit=one.at_most_ms, unit="ms of CPU")
        for name, one in MEASURED.items()
    ]
    for name in APART:
        whole = f"{name}, in all processes"
        limit = MEASURED[name].at_most_ms
        bars.append(Bar(name=whole, value=_ms(found[whole]), limit=limit, unit="ms of CPU"))
    rows = list(found.values())
    return report("Built-in tools", rows, bars, as_json=chosen.json)


def _ms(row: Row) -> float | None:
    return None if row.value is None else row.value / 1e3


if __name__ == "__main__":
    sys.exit(main())
