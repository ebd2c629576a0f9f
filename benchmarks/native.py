"""The native tools against the same algorithms in plain Python: `python -m benchmarks.native`.

A tool is called through the whole house, warm: its loops and its expression are compiled. All that
it costs counts, in every process: the gate, the schema, the way to the worker and back. What a
first call costs is a row of its own.
"""

import math
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import uvloop

from benchmarks import plain_math, plain_matrices
from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, family, options, report
from tests.servers.sandboxes import on_path
from toolgate import Toolgate
from toolgate.settings.settings import Settings
from toolgate.tools.native.gaussian_process import LENGTHS
from toolgate.tools.native.proposing import CANDIDATES, NEARBY

# At least ten times as fast.
_MOST = 0.1
_TIMES = 5
_ROSENBROCK = 10
_SIZE = 120


class _Pair(NamedTuple):
    """A call of a tool, and the same without it."""

    args: dict[str, Any]
    plain: Callable[[], object]


def _matrix(size: int) -> list[list[float]]:
    chance = random.Random(1)  # noqa: S311  an example
    return [[chance.gauss(0.0, 1.0) for _ in range(size)] for _ in range(size)]


def _symmetric(size: int) -> list[list[float]]:
    rows = _matrix(size)
    return [[rows[i][j] + rows[j][i] for j in range(size)] for i in range(size)]


def _pairs() -> Mapping[str, _Pair]:
    general, even, side = _matrix(_SIZE), _symmetric(_SIZE), [1.0] * _SIZE
    return {
        "matrix_solve": _Pair(
            {"a": general, "b": side}, lambda: plain_matrices.solve(general, side)
        ),
        "matrix_eigenvalues": _Pair(
            {"matrix": even, "vectors": False}, lambda: plain_matrices.eigenvalues(even)
        ),
        "matrix_svd": _Pair(
            {"matrix": general, "vectors": False}, lambda: plain_matrices.singular_values(general)
        ),
        "solve_ode": _ode(),
        "optimize": _valley(),
        "monte_carlo_native": _simulation(),
        "mcmc": _walk(),
        "bayesopt": _search(),
    }


def _ode() -> _Pair:
    args = {
        "equations": {"x": "y", "y": "2*(1 - x^2)*y - x"},
        "initial": {"x": 1.0, "y": 0.0},
        "end": 200.0,
        "points": 2,
        "rtol": 1e-8,
        "method": "rk45",
    }

    def rhs(state: list[float]) -> list[float]:
        x, y = state
        return [y, 2 * (1 - x**2) * y - x]

    return _Pair(args, lambda: plain_math.dormand_prince(rhs, [1.0, 0.0], 200.0, 1e-8, 1e-9))


def _valley() -> _Pair:
    terms = [f"(1-x{i})^2 + 100*(x{i + 1}-x{i}^2)^2" for i in range(_ROSENBROCK - 1)]
    args = {
        "expression": " + ".join(terms),
        "start": {f"x{i}": -1.0 for i in range(_ROSENBROCK)},
        "restarts": 0,
    }

    def function(x: list[float]) -> float:
        return sum(
            (1 - x[i]) ** 2 + 100 * (x[i + 1] - x[i] ** 2) ** 2 for i in range(_ROSENBROCK - 1)
        )

    start = [-1.0] * _ROSENBROCK
    return _Pair(args, lambda: plain_math.nelder_mead(function, start, 1e-8, 10_000))


def _simulation() -> _Pair:
    args = {
        "expression": "exp(x) * y",
        "variables": {
            "x": {"distribution": "normal", "mean": 0, "std": 1},
            "y": {"distribution": "uniform", "low": 1, "high": 2},
        },
        "samples": 500_000,
    }
    return _Pair(
        args,
        lambda: plain_math.monte_carlo(
            lambda chance: math.exp(chance.gauss(0.0, 1.0)) * chance.uniform(1.0, 2.0), 500_000
        ),
    )


def _walk() -> _Pair:
    args = {
        "log_density": "-(x^2 - 1.6*x*y + y^2) / 0.72",
        "start": {"x": 0.0, "y": 0.0},
        "samples": 50_000,
        "warmup": 10_000,
    }

    def density(place: list[float]) -> float:
        x, y = place
        return -(x**2 - 1.6 * x * y + y**2) / 0.72

    def plain() -> None:
        """Less than the tool does: no adapting, no R-hat and no effective size."""
        found = [
            plain_math.metropolis(density, [0.0, 0.0], 60_000, seed)[10_000:] for seed in range(4)
        ]
        for at in range(2):
            every = sorted(place[at] for one in found for place in one)
            mean = math.fsum(every) / len(every)
            math.fsum((one - mean) ** 2 for one in every)

    return _Pair(args, plain)


def _search() -> _Pair:
    """One suggestion from 60 observations: all that one round of a search does."""
    chance = random.Random(2)  # noqa: S311  an example
    points = [[chance.random(), chance.random()] for _ in range(60)]
    values = [math.sin(6 * x) + (y - 0.3) ** 2 for x, y in points]
    args = {
        "bounds": {"x": [0.0, 1.0], "y": [0.0, 1.0]},
        "observations": [
            {"point": {"x": x, "y": y}, "value": value}
            for (x, y), value in zip(points, values, strict=True)
        ],
    }
    every = CANDIDATES + 4 * NEARBY
    return _Pair(args, lambda: plain_math.gaussian_process(points, values, LENGTHS, every))


async def measured() -> tuple[list[Row], list[Bar]]:
    """For each tool: the first call, a warm one, and plain Python."""
    rows: list[Row] = []
    bars: list[Bar] = []
    with TemporaryDirectory(prefix="toolgate-bench-") as folder:
        for name, pair in _pairs().items():
            async with Toolgate.open(Settings(root=Path(folder))) as gate:

                async def call(tool: str = name, args: Any = pair.args, gate: Any = gate) -> None:
                    found = await gate.call(tool, args, caller=CALLER)
                    assert found.ok, found

                began = time.perf_counter()
                await call()
                first = (time.perf_counter() - began) * 1e3
                warm = min([await _spent_ms(call) for _ in range(_TIMES)])
            plain = _plain_ms(pair.plain)
            rows += [
                Row(name=name, value=warm, unit="ms"),
                Row(name=f"{name}, plain Python", value=plain, unit="ms"),
                Row(
                    name=f"{name}, first call", value=first, unit="ms", note="wall, worker and all"
                ),
            ]
            share = warm / plain
            note = f"{name}, {plain / warm:.0f} times as fast"
            bars.append(Bar(name=note, value=share, limit=_MOST, unit="of plain Python"))
    return rows, bars


async def _spent_ms(call: Callable[[], Awaitable[None]]) -> float:
    before = _spent()
    await call()
    after = _spent()
    return sum(took - before.get(task, 0) for task, took in after.items()) / 1e6


def _spent() -> dict[int, int]:
    """Nanoseconds of CPU of this process and of all that it has started, thread by thread."""
    return {
        int(task.name): int((task / "schedstat").read_text("utf-8").split()[0])
        for pid in family(os.getpid())
        for task in Path(f"/proc/{pid}/task").iterdir()
    }


def _plain_ms(function: Callable[[], object]) -> float:
    began = time.process_time()
    function()
    return (time.process_time() - began) * 1e3


def main() -> int:
    chosen = options("The native tools against plain Python.").parse_args()
    on_path()
    rows, bars = uvloop.run(measured())
    return report("Native tools", rows, bars, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
