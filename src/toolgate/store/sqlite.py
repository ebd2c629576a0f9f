"""SQLite: WAL, full sync, and one writer thread that commits what waits in groups.

One fsync serves everyone who asked in the meantime, so throughput grows with the number of callers
and nobody meets a lock of our own making.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError

from toolgate.errors import StoreUnavailable, ToolgateError

T = TypeVar("T")
_MOST_TOGETHER = 256
_READERS = 2
_BUSY_MS = 5_000


class _Job(NamedTuple):
    work: Callable[[Connection], Any]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]"


class Sqlite:
    """One file, or memory."""

    def __init__(self, path: Path | None) -> None:
        """`None` keeps everything in memory; it is gone when this closes."""
        if path is not None:
            _make_private(path)
        self._memory = path is None
        self._engine = _engine(path)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="toolgate-read")
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="toolgate-write", daemon=True)
        self._writer.start()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Readers never wait for the writer; in memory there is only one connection."""
        if self._memory:
            return await self.write(work)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Queue the work; the future is resolved after the commit that holds it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(work, loop, done))
        return await done

    async def close(self) -> None:
        """Let the writer finish its queue."""
        self._jobs.put(None)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._readers, self._writer.join)
        self._readers.shutdown(wait=False)
        self._engine.dispose()

    def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._engine.connect() as connection:
                return work(connection)
        except (DBAPIError, sqlite3.Error) as error:
            raise unavailable(error) from None

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
        results: list[tuple[_Job, Any, BaseException | None]] = []
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                results.extend((job, *_attempt(connection, job.work)) for job in batch)
                connection.commit()
        except BaseException as error:  # noqa: BLE001  those who wait must hear it
            results = [(job, None, error) for job in batch]
        for job, value, error in results:
            _answer(job, value, error)


def _attempt(
    connection: Connection, work: Callable[[Connection], Any]
) -> tuple[Any, BaseException | None]:
    """One work in its own savepoint: its failure is its own."""
    savepoint = connection.begin_nested()
    try:
        value = work(connection)
    except Exception as error:  # noqa: BLE001  handed to whoever asked
        savepoint.rollback()
        return None, error
    savepoint.commit()
    return value, None


def _answer(job: _Job, value: Any, error: BaseException | None) -> None:
    if isinstance(error, (DBAPIError, sqlite3.Error)) and not isinstance(error, IntegrityError):
        error = unavailable(error)

    def resolve() -> None:
        if job.done.cancelled():
            return
        if error is None:
            job.done.set_result(value)
        else:
            job.done.set_exception(error)

    try:
        job.loop.call_soon_threadsafe(resolve)
    except RuntimeError:
        # The loop that asked is gone; nobody waits for this answer.
        return


def unavailable(error: BaseException) -> ToolgateError:
    """What the caller may know: neither the statement nor the file's place."""
    cause = getattr(error, "orig", None) or error
    return StoreUnavailable(
        f"The store cannot be used right now ({type(cause).__name__}: {cause}). "
        "Nothing was changed; try again when it is back."
    )


def _engine(path: Path | None) -> Engine:
    url = "sqlite://" if path is None else f"sqlite:///{path}"
    pool = sa.StaticPool if path is None else sa.QueuePool
    engine = sa.create_engine(url, poolclass=pool, connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # Transactions are begun by us: the driver's own ways commit in the middle of a migration.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")

    return engine


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
