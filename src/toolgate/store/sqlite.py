"""SQLite: WAL, full sync, and one writer thread that commits what waits in groups.

One fsync serves everyone who asked in the meantime, so throughput grows with the number of callers
and nobody meets a lock of our own making.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError

from toolgate import clock
from toolgate.errors import StoreUnavailable
from toolgate.store.outage import closed, outage

T = TypeVar("T")
_MOST_TOGETHER = 256
_READERS = 2
_BUSY_MS = 5_000
_TRY_AGAIN = 0.01


class _Job(NamedTuple):
    work: Callable[[Connection], Any]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]"


class _Answer(NamedTuple):
    job: _Job
    value: Any
    error: BaseException | None


class Sqlite:
    """One file, or memory."""

    def __init__(self, path: Path | None) -> None:
        """`None` keeps everything in memory; it is gone when this closes."""
        if path is not None:
            _make_private(path)
        self._memory = path is None
        self._closed = False
        self._engine = _engine(path)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="toolgate-read")
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="toolgate-write", daemon=True)
        self._writer.start()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Readers never wait for the writer; in memory there is only one connection."""
        if self._memory:
            return await self.write(work)
        if self._closed:
            raise closed()
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Queue the work; the future is resolved after the commit that holds it.

        Who is cancelled meanwhile does not take the work back: it is done, in its turn.
        """
        if self._closed:
            raise closed()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(work, loop, done))
        return await done

    async def close(self) -> None:
        """Let the writer finish its queue, and readers what they read. Twice equals once."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._writer.join()
        self._readers.shutdown()
        self._engine.dispose()

    def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._engine.connect() as connection:
                # Without it every statement would see a world of its own.
                connection.exec_driver_sql("BEGIN")
                return work(connection)
        except (DBAPIError, sqlite3.Error) as error:
            raise outage(error) from None

    def _write(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch = [job]
            last = False
            while len(batch) < _MOST_TOGETHER and not self._jobs.empty():
                waiting = self._jobs.get()
                if waiting is None:
                    last = True
                    break
                batch.append(waiting)
            self._commit(batch)
            if last:
                return

    def _commit(self, batch: list[_Job]) -> None:
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                answers = [_attempt(connection, job) for job in batch]
                connection.commit()
        except BaseException as error:  # noqa: BLE001  those who wait must hear it
            answers = [_Answer(job, None, error) for job in batch]
        by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = defaultdict(list)
        for answer in answers:
            by_loop[answer.job.loop].append(answer)
        for loop, given in by_loop.items():
            # A loop that is gone waits for no answer.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_give, given)


def _attempt(connection: Connection, job: _Job) -> _Answer:
    """One work in its own savepoint: its failure is its own."""
    # The driver's, since the three statements of a savepoint would else cost more than the work.
    driver = cast("sqlite3.Connection", connection.connection.driver_connection)
    driver.execute("SAVEPOINT work")
    try:
        value = job.work(connection)
    except Exception as error:  # noqa: BLE001  handed to whoever asked
        driver.execute("ROLLBACK TO work")
        driver.execute("RELEASE work")
        if isinstance(error, StopIteration):
            # A future does not take it, and whoever waits would wait for ever.
            error = RuntimeError("the work ran out of something to iterate over")
        return _Answer(job, None, error)
    driver.execute("RELEASE work")
    return _Answer(job, value, None)


def _give(answers: list[_Answer]) -> None:
    for job, value, error in answers:
        if job.done.done():
            # Cancelled; the work is done all the same.
            continue
        if error is None:
            job.done.set_result(value)
        elif isinstance(error, (DBAPIError, sqlite3.Error)) and not isinstance(
            error, IntegrityError
        ):
            job.done.set_exception(outage(error))
        else:
            job.done.set_exception(error)


def _engine(path: Path | None) -> Engine:
    # Not as one text: a `?` in a path would begin options, and another file would be opened.
    url = sa.URL.create("sqlite", database=None if path is None else str(path))
    pool = sa.StaticPool if path is None else sa.QueuePool
    engine = sa.create_engine(url, poolclass=pool, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # Transactions are begun by us: the driver's own ways commit in the middle of a migration.
        connection.isolation_level = None
        _keep_a_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")

    return engine


def _keep_a_log(connection: sqlite3.Connection) -> None:
    """WAL. Processes that open a new file at once meet here, and SQLite does not wait by itself."""
    until_ns = clock.monotonic_ns() + _BUSY_MS * 1_000_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or clock.monotonic_ns() > until_ns:
                raise
            time.sleep(_TRY_AGAIN)
        else:
            return


def _make_private(path: Path) -> None:
    """The store holds who called what: for its owner's eyes."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"The store's file cannot be made ({error.strerror}). "
            "Check [store] url and who may write there."
        ) from None
