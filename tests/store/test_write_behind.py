"""What waits is written: behind, at the end, after a failure, whoever goes away meanwhile."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.store.entries import entry, pure
from tests.store.places import busy
from toolgate.errors import StoreUnavailable
from toolgate.ledger.state import State
from toolgate.store.database import Database
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.records import call_pages
from toolgate.store.sqlite import Sqlite

pytestmark = pytest.mark.req("D1", "O2")
T = TypeVar("T")
CROWD = 10_000


def on_disk(connection: Connection) -> int:
    """How many calls the pages hold."""
    return connection.execute(sa.select(sa.func.sum(call_pages.c.calls))).scalar() or 0


class Unlucky:
    """A database whose answers get lost, or that refuses, as often as it is told to."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.lost = 0
        self.refused = 0

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        return await self._inner.read(work, tenant=tenant)

    async def ask(
        self, question: str, values: tuple[str, ...] = (), *, tenant: str = ""
    ) -> Sequence[Sequence[Any]]:
        return await self._inner.ask(question, values, tenant=tenant)

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        if self.refused:
            self.refused -= 1
            raise StoreUnavailable("refused")
        done = await self._inner.write(work, tenant=tenant)
        if self.lost:
            self.lost -= 1
            raise StoreUnavailable("written, but the connection broke before the answer")
        return done

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Sqlite]:
    database = Sqlite(path / "toolgate.db")
    try:
        await migrate(database)
        yield database
    finally:
        await database.close()


async def test_what_is_noted_is_written_without_anyone_asking(database: Database) -> None:
    journal = TableJournal(database)
    journal.start()
    journal.note(pure())
    while await database.read(on_disk) < 1:
        pass
    await journal.close()


async def test_closing_writes_what_waits(database: Database) -> None:
    for started in (True, False):
        journal = TableJournal(database)
        if started:
            journal.start()
        journal.note(pure())
        await journal.close()
    assert await database.read(on_disk) == 2


async def test_closing_twice_is_closing_once(database: Database) -> None:
    journal = TableJournal(database)
    journal.start()
    journal.note(pure())
    await journal.close()
    await journal.close()
    assert await database.read(on_disk) == 1


async def test_a_closed_journal_takes_nothing_that_it_would_lose(database: Database) -> None:
    journal = TableJournal(database)
    journal.start()
    await journal.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        journal.note(pure())


async def test_an_intent_after_the_end_is_refused_and_does_not_wait_for_ever(
    database: Database,
) -> None:
    journal = TableJournal(database)
    await journal.close()
    await database.close()
    for late in (journal.begin(entry()), journal.end(entry()), journal.entries("acme")):
        with pytest.raises(StoreUnavailable, match="closed"):
            await late


async def test_calls_are_held_back_when_too_many_wait(database: Database) -> None:
    journal = TableJournal(database)
    for _ in range(CROWD - 1):
        journal.note(pure())
    assert not journal.crowded()
    journal.note(pure())
    assert journal.crowded()
    await journal.drain()
    assert not journal.crowded()
    assert await database.read(on_disk) == CROWD


async def test_what_is_being_written_still_counts_as_waiting(tmp_path: Path) -> None:
    """It may come back; who counted only the rest would let memory fill while the store is away."""
    async with opened(tmp_path) as database:
        journal = TableJournal(database)
        for _ in range(CROWD):
            journal.note(pure())
        async with busy(database):
            draining = asyncio.ensure_future(journal.drain())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert journal.crowded()
        await draining
        assert not journal.crowded()


async def test_an_entry_that_is_being_written_is_seen(tmp_path: Path) -> None:
    """Between `waits` and `is written` there is a moment when it is neither."""
    async with opened(tmp_path) as database:
        journal = TableJournal(database)
        noted = pure()
        journal.note(noted)
        async with busy(database):
            draining = asyncio.ensure_future(journal.drain())
            await asyncio.sleep(0)
            reading = asyncio.ensure_future(journal.entries("acme"))
            await asyncio.sleep(0)
        await draining
        assert [one.call_id for one in await reading] == [noted.call_id]


async def test_draining_covers_what_came_while_another_was_draining(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        journal = TableJournal(database)
        journal.note(pure())
        async with busy(database):
            first = asyncio.ensure_future(journal.drain())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            journal.note(pure())
            second = asyncio.ensure_future(journal.drain())
            await asyncio.sleep(0)
        await second
        assert await database.read(on_disk) == 2
        await first


async def test_a_caller_who_goes_away_while_draining_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as database:
        journal = TableJournal(database)
        noted = [pure() for _ in range(3)]
        for one in noted:
            journal.note(one)
        async with busy(database):
            leaving = asyncio.ensure_future(journal.drain())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            journal.note(pure())
        await journal.drain()
        assert len(await journal.entries("acme")) == 4
        assert await database.read(on_disk) == 4


async def test_a_write_whose_answer_was_lost_is_not_doubled(database: Database) -> None:
    unlucky = Unlucky(database)
    journal = TableJournal(unlucky)
    noted = [pure(), pure(tenant="globex"), pure()]
    for one in noted:
        journal.note(one)
    unlucky.lost = 2
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await journal.drain()
        journal.note(pure())
    await journal.drain()
    assert len(await journal.entries("acme")) == 4
    assert len(await journal.entries("globex")) == 1


async def test_the_writer_tries_again_after_someone_elses_write_failed(
    database: Database,
) -> None:
    """A failed drain puts its entries back; nobody would else wake the writer for them."""
    unlucky = Unlucky(database)
    journal = TableJournal(unlucky)
    journal.start()
    unlucky.refused = 1
    journal.note(pure())
    with pytest.raises(StoreUnavailable):
        await journal.drain()
    while await database.read(on_disk) < 1:
        pass
    await journal.close()


async def test_large_arguments_do_not_wait_in_memory(database: Database) -> None:
    journal = TableJournal(database)
    args = b"x" * 1_000_000
    before = sys.getrefcount(args)
    journal.note(pure(args=args))
    assert sys.getrefcount(args) == before
    await journal.drain()


async def test_two_waits_in_one_drain_share_one_write(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        journal = TableJournal(database)
        journal.note(pure())
        await asyncio.gather(*(journal.drain() for _ in range(20)))
        pages = await database.read(
            lambda connection: connection.execute(sa.select(call_pages.c.calls)).scalars().all()
        )
        assert list(pages) == [1]


async def test_an_intent_whose_caller_leaves_is_ended_after_it_began(tmp_path: Path) -> None:
    """As `executor.record` does: the order of the two writes is the order they were asked in."""
    async with opened(tmp_path) as database:
        journal = TableJournal(database)
        intent = entry()
        over = msgspec.structs.replace(intent, state=State.FAILED, fence=1)
        async with busy(database):
            beginning = asyncio.ensure_future(journal.begin(intent))
            await asyncio.sleep(0)
            beginning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beginning
            ending = asyncio.ensure_future(journal.end(over))
            await asyncio.sleep(0)
        await ending
        assert [one.state for one in await journal.entries("acme")] == [State.FAILED]
