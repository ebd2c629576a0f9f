"""SQLite: WAL, full sync, and one writer thread that commits what waits in groups.

One fsync serves everyone who asked in the meantime, so throughput grows with the number of callers
and nobody meets a lock of our own making.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event

from toolgate import clock
from toolgate.errors import StoreUnavailable, ToolgateError
from toolgate.store.jobs import Answer, Job, give
from toolgate.store.outage import closed
from toolgate.store.readers import Readers, driver_of, in_one_moment, let_go

T = TypeVar("T")
A = TypeVar("A")
_MOST_TOGETHER = 256
_READERS = 2
_BUSY_MS = 5_000
_TRY_AGAIN = 0.01
# A commit that takes longer is not the disk's usual way.
_STUCK_NS = 100_000_000


class Sqlite:
    """One file, or memory."""

    def __init__(self, path: Path | None) -> None:
        """`None` keeps everything in memory; it is gone when this closes."""
        if path is not None:
            _make_private(path)
        self._closed = False
        self._engine = _engine(path)
        # For single statements, on the loop's own thread: a thread's answer costs ten times what
        # the row does. It is in memory, or nearly; a disk that hangs hangs the writer first, and
        # from then on nobody looks from here.
        self._glance: Connection | None = None
        self._opening = threading.Lock()
        self._writing_ns = 0
        # The writer's own connection.
        self._hand: Connection | None = None
        # Who is told before work on a file that another connection has written to.
        self._watch: Callable[[Connection], None] | None = None
        self._version = -1
        self._readers = None if path is None else Readers(self._engine, _READERS)
        # What was asked for in this turn of a loop, and what the writer was handed of earlier ones.
        self._asked: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        self._jobs: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        # Between a loop that asks and another that closes: whoever is not refused is handed over.
        self._asking = threading.Lock()
        self._writer = threading.Thread(target=self._write, name="toolgate-write", daemon=True)
        self._writer.start()

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:  # noqa: ARG002  a file hides no rows
        """Readers never wait for the writer; in memory there is only one connection."""
        if self._closed:
            raise closed()
        if self._readers is None:
            return await self.write(work)
        return await self._readers.read(partial(in_one_moment, work))

    async def ask(
        self,
        question: str,
        values: tuple[str, ...] = (),
        *,
        tenant: str = "",  # noqa: ARG002  a file hides no rows
    ) -> Sequence[Sequence[Any]]:
        """One statement sees one moment: it needs no transaction of ours."""
        # The others' turn. And whoever cannot wait finds out each time, not now and then.
        await asyncio.sleep(0)
        if self._closed:
            raise closed()
        work = partial(_asked, question, values)
        if self._readers is None:
            return await self.write(work)
        if self._glance is None or self._is_stuck():
            return await self._asked_behind(self._readers, work)
        try:
            return work(self._glance)
        except sqlite3.Error:
            # Busy, perhaps, or broken: a reader can wait, and knows what to say.
            return await self._asked_behind(self._readers, work)

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:  # noqa: ARG002  a file hides no rows
        """Queue the work; the future is resolved after the commit that holds it.

        Who is cancelled meanwhile does not take the work back: it is done, in its turn.
        """
        return await self._queued(work)

    def write_together(
        self, work: Callable[[Connection, list[A]], Sequence[Any]], item: A
    ) -> "asyncio.Future[Any]":
        """As `write`, for work that takes what waits beside it in one go: all items of its kind.

        It gives an answer for each; one that is an error has left nothing behind. Where it raises,
        nothing of that moment is kept, and each item is tried by itself.
        """
        return self._queued(work, item)

    def watch(self, look: Callable[[Connection], None]) -> None:
        """Have a look, in the writer's turn, whenever others wrote or put another file's pages."""
        self._watch = look

    def _queued(self, work: Callable[..., Any], *item: object) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        job = Job(work, loop, done, item)
        with self._asking:
            if self._closed:
                raise closed()
            asked = self._asked.get(loop)
            if asked is None:
                asked = self._asked[loop] = []
                # Not at once: a writer that is woken by the first of many waits for the interpreter
                # until the last one is there, or goes off with a few and lets the others wait.
                loop.call_soon(self._hand_over, loop)
            asked.append(job)
        return done

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """All that was asked for in one turn of a loop."""
        with self._asking:
            asked = self._asked.pop(loop, None)
            if asked is not None:
                # Before the word that ends the writer, or by whoever closes.
                self._jobs.put(asked)

    async def close(self) -> None:
        """Let the writer finish its queue, and readers what they read. Twice equals once."""
        with self._asking:
            if not self._closed:
                self._closed = True
                for asked in self._asked.values():
                    self._jobs.put(asked)
                self._asked.clear()
                self._jobs.put(None)
        await asyncio.to_thread(self._finish)

    async def _asked_behind(self, readers: Readers, work: Callable[[Connection], T]) -> T:
        found = await readers.read(work)
        if self._glance is None and not self._closed:
            await readers.read(self._open_glance)
        return found

    def _open_glance(self, _: Connection) -> None:
        with self._opening:
            if self._glance is None:
                self._glance = _glancing(self._engine)

    def _is_stuck(self) -> bool:
        begun_ns = self._writing_ns
        return begun_ns != 0 and clock.monotonic_ns() - begun_ns > _STUCK_NS

    def _finish(self) -> None:
        self._writer.join()
        if self._readers is not None:
            self._readers.close()
        if self._glance is not None:
            self._glance.close()
            self._glance = None
        self._engine.dispose()

    def _write(self) -> None:
        try:
            self._write_all()
        finally:
            let_go(self._hand)
            self._hand = None

    def _write_all(self) -> None:
        last = False
        while not last and (batch := self._jobs.get()) is not None:
            while len(batch) < _MOST_TOGETHER and not self._jobs.empty():
                waiting = self._jobs.get()
                if waiting is None:
                    last = True
                    break
                batch += waiting
            for first in range(0, len(batch), _MOST_TOGETHER):
                self._commit(batch[first : first + _MOST_TOGETHER])

    def _commit(self, batch: list[Job]) -> None:
        self._writing_ns = clock.monotonic_ns()
        try:
            # Kept: to hand it out anew takes as long as several rows.
            if self._hand is None:
                self._hand = self._engine.connect()
                self._version = -1
            answers = _committed(self._hand, batch, self._look)
        except BaseException as error:  # noqa: BLE001  those who wait must hear it
            # Whatever it was in the middle of, the next batch does not meet it.
            let_go(self._hand)
            self._hand = None
            if len(batch) > 1 and not isinstance(error, sqlite3.OperationalError):
                # Not the disk's trouble, but one work's, which is nobody else's.
                for job in batch:
                    self._commit([job])
                return
            answers = [Answer(job, None, error) for job in batch]
        self._writing_ns = 0
        give(answers)

    def _look(self, connection: Connection) -> None:
        if self._watch is None:
            return
        (version,) = driver_of(connection).execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._watch(connection)
            self._version = version


def _committed(
    connection: Connection, batch: list[Job], look: Callable[[Connection], None]
) -> list[Answer]:
    # The driver's, since these statements would else cost more than the work.
    driver = driver_of(connection)
    driver.execute("BEGIN IMMEDIATE")
    look(connection)
    answers: list[Answer] = []
    for work, jobs in groupby(batch, lambda job: job.work):
        some = list(jobs)
        if some[0].item:
            answers += _attempt_together(connection, work, some)
        else:
            answers += [_attempt(connection, job) for job in some]
        if not driver.in_transaction:
            # A disk that is full ends it for all; what came next would be kept one by one.
            error = next((one.error for one in answers if one.error is not None), None)
            raise error or sqlite3.OperationalError("the transaction is over")
    driver.execute("COMMIT")
    if connection.in_transaction():
        # Work by SQLAlchemy has begun one of its own making, which was the same.
        connection.commit()
    return answers


def _attempt(connection: Connection, job: Job) -> Answer:
    """One work in its own savepoint: its failure is its own."""
    try:
        return Answer(job, whole(connection, job.work), None)
    except Exception as error:  # noqa: BLE001  handed to whoever asked
        return Answer(job, None, error)


def _attempt_together(
    connection: Connection, work: Callable[..., Sequence[Any]], jobs: Sequence[Job]
) -> list[Answer]:
    given = work(connection, [job.item[0] for job in jobs])
    return [
        Answer(job, None, one) if isinstance(one, ToolgateError) else Answer(job, one, None)
        for job, one in zip(jobs, given, strict=True)
    ]


def whole(connection: Connection, work: Callable[[Connection], T]) -> T:
    """What the work gives; where it raises, nothing of it is left."""
    driver = driver_of(connection)
    driver.execute("SAVEPOINT work")
    try:
        value = work(connection)
    except Exception:
        driver.execute("ROLLBACK TO work")
        driver.execute("RELEASE work")
        raise
    driver.execute("RELEASE work")
    return value


def _asked(
    question: str, values: tuple[str, ...], connection: Connection
) -> Sequence[Sequence[Any]]:
    named = {str(number): value for number, value in enumerate(values, 1)}
    return driver_of(connection).execute(question, named).fetchall()


def _glancing(engine: Engine) -> Connection:
    """A connection that waits for nobody. Kept to the end: in the pool it would be another's."""
    connection = engine.connect()
    driver_of(connection).execute("PRAGMA busy_timeout = 0")
    return connection


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
        # Pages that change again and again are copied back once in so many, not in a thousand.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        # What a savepoint may have to bring back: a file of its own takes longer than the rows.
        connection.execute("PRAGMA temp_store = MEMORY")
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
