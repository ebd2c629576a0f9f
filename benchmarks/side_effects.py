"""What a side effect costs: claim and intent on disk, the tool, outcome and audit on disk.

Run it with `python -m benchmarks.side_effects`. The floor is two durable commits of one row, by the
same road: through SQLite's writer thread, or on one asyncpg connection. Rounds are interleaved, so
that a disk that slows down slows all of them. PostgreSQL is the tests' own (`make services`).
"""

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from sqlalchemy import Connection

from benchmarks.embedded import CALLER
from benchmarks.measure import Bar, Row, options, quiet_gc, report
from tests.servers.postgres import Postgres as Server
from tests.servers.process import AbsentError
from toolgate import Toolgate, Turn, tool
from toolgate.settings.settings import Settings, Store
from toolgate.store.readers import driver_of
from toolgate.store.sqlite import Sqlite

ROUNDS = 9
ALONE = 192
CALLERS = 64
TOGETHER = 40
COMMIT = "SQLite: two group commits, 1 caller"
ONE = "SQLite: side effect, 1 caller"
MANY = f"SQLite: side effect, {CALLERS} callers"
PG_COMMIT = "PostgreSQL: two asyncpg commits"
PG_ONE = "PostgreSQL: side effect, 1 caller"
PG_MANY = f"PostgreSQL: side effect, {CALLERS} callers"
WORDS = "x" * 400
INSERT = "INSERT INTO row VALUES ({})"

Round = Callable[[], Awaitable[int]]


@dataclass
class Took:
    """Of each round, µs per call: on the wall, and CPU of the whole process."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


@tool(effect="irreversible")
async def send(to: str, number: int) -> dict[str, Any]:
    """Send it."""
    return {"sent": number, "to": to}


def _commits(database: Sqlite, ids: Iterator[int]) -> Round:
    statement = INSERT.format("?, ?")

    def insert(connection: Connection) -> None:
        driver_of(connection).execute(statement, (next(ids), WORDS))

    async def run() -> int:
        for _ in range(ALONE):
            await database.write(insert)
            await database.write(insert)
        return ALONE

    return run


def _calls(gate: Toolgate, ids: Iterator[int], callers: int, times: int) -> Round:
    async def caller() -> None:
        for _ in range(times):
            number = next(ids)
            output = await gate.call(
                "send",
                {"to": "bob@example.com", "number": number},
                caller=CALLER,
                turn=Turn(group=f"t{number}"),
            )
            assert output.ok, output

    async def run() -> int:
        await asyncio.gather(*(caller() for _ in range(callers)))
        return callers * times

    return run


@asynccontextmanager
async def _opened(url: str, folder: Path) -> AsyncGenerator[Toolgate]:
    async with Toolgate.open(Settings(store=Store(url=url), root=folder)) as gate:
        gate.add(send)
        yield gate


async def _sqlite(folder: Path, ids: Iterator[int], stack: AsyncExitStack) -> dict[str, Round]:
    database = Sqlite(folder / "floor.db")
    stack.push_async_callback(database.close)
    table = "CREATE TABLE row (id INTEGER PRIMARY KEY, words TEXT)"
    await database.write(lambda connection: connection.exec_driver_sql(table).rowcount)
    gate = await stack.enter_async_context(_opened(f"sqlite:///{folder / 'calls.db'}", folder))
    return {
        COMMIT: _commits(database, ids),
        ONE: _calls(gate, ids, 1, ALONE),
        MANY: _calls(gate, ids, CALLERS, TOGETHER),
    }


async def _postgres(folder: Path, ids: Iterator[int], stack: AsyncExitStack) -> dict[str, Round]:
    server = stack.enter_context(Server(durable=True))
    import asyncpg  # noqa: PLC0415  an extra

    connect = cast("Callable[[str], Awaitable[Any]]", asyncpg.connect)
    line = await connect(server.dsn)
    stack.push_async_callback(line.close)
    await line.execute("CREATE DATABASE floor")
    await line.execute("CREATE DATABASE calls")
    floor = await connect(server.dsn.removesuffix("/postgres") + "/floor")
    stack.push_async_callback(floor.close)
    await floor.execute("CREATE TABLE row (id bigint PRIMARY KEY, words text)")
    statement = INSERT.format("$1, $2")

    async def commits() -> int:
        for _ in range(ALONE):
            await floor.fetch(statement, next(ids), WORDS)
            await floor.fetch(statement, next(ids), WORDS)
        return ALONE

    url = server.dsn.removesuffix("/postgres") + "/calls"
    gate = await stack.enter_async_context(_opened(url, folder))
    return {
        PG_COMMIT: commits,
        PG_ONE: _calls(gate, ids, 1, ALONE),
        PG_MANY: _calls(gate, ids, CALLERS, TOGETHER),
    }


async def _measured() -> tuple[dict[str, Took], str]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="toolgate-bench-")))
        ids = count()
        rounds = await _sqlite(folder, ids, stack)
        missing = ""
        try:
            rounds |= await _postgres(folder, ids, stack)
        except AbsentError as reason:
            missing = str(reason)
        took = {name: Took() for name in rounds}
        for number in range(ROUNDS + 1):
            for name, run in rounds.items():
                with quiet_gc():
                    wall, cpu = time.perf_counter(), time.process_time()
                    calls = await run()
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                # The first round is the warm-up.
                if number:
                    took[name].wall.append(wall / calls * 1e6)
                    took[name].cpu.append(cpu / calls * 1e6)
        return took, missing


def _rows(took: dict[str, Took], missing: str) -> list[Row]:
    rows: list[Row] = []
    for name in (COMMIT, ONE, MANY, PG_COMMIT, PG_ONE, PG_MANY):
        if name not in took:
            rows.append(Row(name=name, note=missing))
            continue
        wall, cpu = took[name].wall, min(took[name].cpu)
        note = f"wall; CPU {cpu:.0f} µs; {1e6 / min(wall):,.0f} a second"
        rows.append(Row(name=name, value=min(wall), median=statistics.median(wall), note=note))
    return rows


def _ratio(took: dict[str, Took], name: str, to: str) -> float | None:
    """The median of the rounds' ratios: each is of two stretches that lie side by side."""
    if name not in took or to not in took:
        return None
    pairs = zip(took[name].wall, took[to].wall, strict=True)
    return statistics.median(one / other for one, other in pairs)


def main() -> int:
    chosen = options("What a side effect costs beside two durable commits.").parse_args()
    took, missing = asyncio.run(_measured())
    bars = (
        Bar(name="SQLite, alone", value=_ratio(took, ONE, COMMIT), limit=1.6, unit="x the floor"),
        # Where the bars were set, two group commits take 500 µs, and 200 is 0.4 of that.
        Bar(
            name=f"SQLite, {CALLERS} callers",
            value=_ratio(took, MANY, COMMIT),
            limit=0.4,
            unit="x the floor",
        ),
        Bar(
            name=f"SQLite, {CALLERS} callers",
            value=min(took[MANY].wall),
            limit=200.0,
            unit="µs a call",
        ),
        Bar(
            name=f"SQLite, a call of {CALLERS} callers beside one caller's",
            value=_ratio(took, MANY, ONE),
            limit=0.125,
            unit="x",
        ),
        Bar(
            name="PostgreSQL, alone",
            value=_ratio(took, PG_ONE, PG_COMMIT),
            limit=2.5,
            unit="x the floor",
        ),
    )
    return report("Side effects", _rows(took, missing), bars, baseline=COMMIT, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
