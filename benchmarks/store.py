"""What durability costs: rows a second on SQLite, each on disk before it is acknowledged.

Run it with `python -m benchmarks.store`. The floor is the driver itself: one insert, one commit,
one fsync. One caller of ours waits for the same fsync; many share it. Rounds are interleaved, so
that a disk that slows down slows all of them.
"""

import asyncio
import sqlite3
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from sqlalchemy import Connection

from benchmarks.measure import Row, options, quiet_gc, report
from toolgate.store.sqlite import Sqlite

ROUNDS = 9
ROWS = 512
CALLERS = 64
RAW = "sqlite3, one commit a row"
ALONE = "Sqlite.write, 1 caller"
MANY = f"Sqlite.write, {CALLERS} callers"
TABLE = sa.table("row", sa.column("id"), sa.column("words"))
WORDS = "x" * 400

Round = Callable[[], Awaitable[None]]


def _raw(connection: sqlite3.Connection, ids: Iterator[int]) -> Round:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, words TEXT)")

    async def run() -> None:
        for _ in range(ROWS):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO row VALUES (?, ?)", (next(ids), WORDS))
            connection.execute("COMMIT")

    return run


def _insert(connection: Connection, *, id: int) -> None:  # noqa: A002  the column's name
    connection.execute(TABLE.insert(), {"id": id, "words": WORDS})


def _ours(database: Sqlite, ids: Iterator[int], callers: int) -> Round:
    async def caller() -> None:
        for _ in range(ROWS // callers):
            await database.write(partial(_insert, id=next(ids)))

    async def run() -> None:
        await asyncio.gather(*(caller() for _ in range(callers)))

    return run


async def _measured() -> list[Row]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="toolgate-bench-")))
        ids = count()
        raw = sqlite3.connect(folder / "raw.db", isolation_level=None)
        stack.enter_context(closing(raw))
        rounds: dict[str, Round] = {RAW: _raw(raw, ids)}
        database = Sqlite(folder / "ours.db")
        stack.push_async_callback(database.close)
        await database.write(
            lambda connection: (
                connection.exec_driver_sql(
                    "CREATE TABLE row (id INTEGER PRIMARY KEY, words TEXT)"
                ).rowcount
            )
        )
        rounds |= {ALONE: _ours(database, ids, 1), MANY: _ours(database, ids, CALLERS)}
        took: dict[str, list[float]] = {name: [] for name in rounds}
        for _ in range(ROUNDS):
            for name, run in rounds.items():
                with quiet_gc():
                    started = time.perf_counter()
                    await run()
                    took[name].append(ROWS / (time.perf_counter() - started))
        return [_row(name, rates) for name, rates in took.items()]


def _row(name: str, rates: list[float]) -> Row:
    return Row(
        name=name,
        value=max(rates),
        median=statistics.median(rates),
        unit="rows/s",
        note="wall; more is better",
    )


def main() -> int:
    chosen = options("What a durable row costs on SQLite, alone and in company.").parse_args()
    return report("Durable rows", asyncio.run(_measured()), (), baseline=RAW, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
