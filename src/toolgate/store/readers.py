"""SQLite's readers: threads that each keep a connection open, so that a look costs little.

Not the loop's own thread: a disk that hangs would stop everyone, and with them whoever asks how the
server is doing. For a single statement the loop's thread waits a moment all the same, since to be
woken through its selector costs more than most answers take; and never again while one is late.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from toolgate.store.jobs import Answer, Job, give, told

T = TypeVar("T")
# A row that is in memory comes in a twentieth of it.
_MOMENT_SECONDS = 0.001


class _Moment:
    """In which an answer is waited for on the spot; once it is over, the answer has to be sent."""

    __slots__ = ("_answer", "_over", "_ready")

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._over = False
        self._ready = threading.Lock()
        self._ready.acquire()

    def wait(self) -> Answer | None:
        if self._ready.acquire(timeout=_MOMENT_SECONDS):
            return self._answer
        self._over = True
        # Whoever came just before that was told that somebody waits.
        return self._answer if self._ready.acquire(blocking=False) else None

    def give(self, answer: Answer) -> bool:
        """Whether it found somebody who waits."""
        self._answer = answer
        self._ready.release()
        return not self._over


class Readers:
    """A few threads over one file. Jobs are taken in the order in which they came."""

    def __init__(self, engine: Engine, count: int) -> None:
        self._engine = engine
        # Of those who waited a moment in vain, how many still wait.
        self._late = 0
        self._jobs: queue.SimpleQueue[tuple[Job, _Moment | None] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, name=f"toolgate-read-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What the work gives. Who is cancelled meanwhile does not take it back."""
        job = _job(work)
        self._jobs.put((job, None))
        return await job.done

    async def ask(self, work: Callable[[Connection], T]) -> T:
        """The same for a single small statement."""
        # The others' turn. And whoever cannot wait finds out each time, not now and then.
        await asyncio.sleep(0)
        if self._late:
            return await self.read(work)
        job, moment = _job(work), _Moment()
        self._jobs.put((job, moment))
        answer = moment.wait()
        if answer is None:
            self._late += 1
            try:
                return await job.done
            finally:
                self._late -= 1
        # It may have been sent as well, at the very end of the moment.
        job.done.cancel()
        if answer.error is not None:
            raise told(answer.error)
        return answer.value

    def close(self) -> None:
        """Once everything that was put is done."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        connection: Connection | None = None
        while (asked := self._jobs.get()) is not None:
            job, moment = asked
            try:
                if connection is None:
                    connection = self._engine.connect()
                answer = Answer(job, job.work(connection), None)
            except BaseException as error:  # noqa: BLE001  whoever waits must hear it
                answer = Answer(job, None, error)
                # Whatever it was in the middle of, the next look does not meet it.
                _let_go(connection)
                connection = None
            if moment is None or not moment.give(answer):
                give((answer,))
            # Kept by nobody while this waits for the next one.
            del asked, job, moment, answer
        _let_go(connection)


def _job(work: Callable[[Connection], T]) -> Job:
    loop = asyncio.get_running_loop()
    return Job(work, loop, loop.create_future())


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


def _let_go(connection: Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(DBAPIError, sqlite3.Error):
            connection.close()
