"""SQLite's readers: threads that each keep a connection open, so that a look costs little."""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from toolgate.store.jobs import Answer, Job, give

T = TypeVar("T")


class Readers:
    """A few threads over one file. Jobs are taken in the order in which they came."""

    def __init__(self, engine: Engine, count: int) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"toolgate-read-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What the work gives. Who is cancelled meanwhile does not take it back."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._jobs.put(Job(work, loop, done))
        return await done

    def close(self) -> None:
        """Once everything that was put is done."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        connection: Connection | None = None
        while (job := self._jobs.get()) is not None:
            try:
                if connection is None:
                    connection = self._engine.connect()
                answer = Answer(job, job.work(connection), None)
            except BaseException as error:  # noqa: BLE001  whoever waits must hear it
                answer = Answer(job, None, error)
                # Whatever it was in the middle of, the next look does not meet it.
                let_go(connection)
                connection = None
            give((answer,))
            # Kept by nobody while this waits for the next one.
            del job, answer
        let_go(connection)


def in_one_moment(work: Callable[[Connection], T], connection: Connection) -> T:
    """The work in a transaction whose writes are not kept."""
    driver = driver_of(connection)
    # Without it every statement would see a world of its own.
    driver.execute("BEGIN")
    try:
        return work(connection)
    finally:
        if connection.in_transaction():
            connection.rollback()
        else:
            driver.rollback()


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The driver itself: around a small statement, SQLAlchemy's own work is the greater part."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def let_go(connection: Connection | None) -> None:
    """Close it, whatever state it is in."""
    if connection is not None:
        with contextlib.suppress(DBAPIError, sqlite3.Error):
            connection.close()
