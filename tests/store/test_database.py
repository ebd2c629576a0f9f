"""One way to read and one way to write, with the same promises on either server."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from tests.store.places import open_at
from toolgate import clock
from toolgate.store.database import Database
from toolgate.store.migrate import migrate
from toolgate.store.tables import tenants

pytestmark = pytest.mark.req("D1")


def add(*names: str) -> Callable[[Connection], str]:
    def work(connection: Connection) -> str:
        for name in names:
            connection.execute(tenants.insert().values(id=name, created_at=clock.utc_now()))
        return names[-1]

    return work


def add_then_fail(connection: Connection) -> None:
    add("half")(connection)
    raise LookupError("not this one")


def names(connection: Connection) -> set[str]:
    return set(connection.execute(sa.select(tenants.c.id)).scalars())


async def test_work_answers_with_what_it_returns(database: Database) -> None:
    assert await database.write(add("acme")) == "acme"
    assert await database.read(names) == {"acme"}


async def test_work_that_fails_leaves_nothing_and_says_why(database: Database) -> None:
    with pytest.raises(LookupError, match="not this one"):
        await database.write(add_then_fail)
    assert await database.read(names) == set()


async def test_work_may_fail_with_whatever_it_likes(database: Database) -> None:
    def exhausted(_: Connection) -> str:
        return next(iter(()))

    answers = await asyncio.gather(
        database.write(exhausted), database.write(add("acme")), return_exceptions=True
    )
    assert isinstance(answers[0], RuntimeError)
    assert answers[1] == "acme"


async def test_work_that_fails_in_company_fails_alone(database: Database) -> None:
    works = [add_then_fail if number % 5 == 2 else add(f"t{number}") for number in range(50)]
    answers = await asyncio.gather(*map(database.write, works), return_exceptions=True)
    failed = {number for number, answer in enumerate(answers) if isinstance(answer, LookupError)}
    assert failed == set(range(2, 50, 5))
    assert await database.read(names) == {f"t{number}" for number in set(range(50)) - failed}


async def test_a_row_that_is_taken_is_the_askers_own_affair(database: Database) -> None:
    answers = await asyncio.gather(
        *(database.write(add(name)) for name in ("acme", "globex", "acme", "initech")),
        return_exceptions=True,
    )
    assert sum(isinstance(answer, IntegrityError) for answer in answers) == 1
    assert await database.read(names) == {"acme", "globex", "initech"}


async def test_sixty_four_writers_at_once_all_succeed(database: Database) -> None:
    async def writer(number: int) -> None:
        for turn in range(4):
            await database.write(add(f"{number}-{turn}"))

    await asyncio.gather(*map(writer, range(64)))
    assert len(await database.read(names)) == 256


async def test_a_read_sees_one_moment_whatever_is_written_meanwhile(url: str) -> None:
    """A world put together from two moments would hide a change for good."""
    database = open_at(url)
    await migrate(database)

    async def elsewhere(name: str) -> None:
        other = open_at(url)
        await other.write(add(name))
        await other.close()

    def twice(connection: Connection) -> tuple[set[str], set[str]]:
        before = names(connection)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(elsewhere("late"))).result()
        return before, names(connection)

    assert await database.read(twice) == (set(), set())
    assert await database.read(names) == {"late"}
    await database.close()


async def test_what_a_read_writes_is_not_kept(url: str) -> None:
    database = open_at(url)
    await migrate(database)
    await asyncio.gather(database.read(add("sneaked in")), return_exceptions=True)
    assert await database.read(names) == set()
    await database.close()


async def test_readers_do_not_wait_for_a_long_write(url: str) -> None:
    writing, reading = open_at(url), open_at(url)
    await migrate(writing)
    begun, free = threading.Event(), threading.Event()

    def long(connection: Connection) -> None:
        add("slow")(connection)
        begun.set()
        free.wait()

    async def other_loop() -> None:
        mine = open_at(url)
        await mine.write(long)
        await mine.close()

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(lambda: asyncio.run(other_loop()))
        try:
            await asyncio.to_thread(begun.wait)
            assert await reading.read(names) == set()
        finally:
            free.set()
        await asyncio.wrap_future(done)
    assert await reading.read(names) == {"slow"}
    await asyncio.gather(writing.close(), reading.close())


async def test_callers_who_go_away_break_nothing_for_those_who_stay(database: Database) -> None:
    works = [asyncio.ensure_future(database.write(add(f"{n}-a", f"{n}-b"))) for n in range(60)]
    for number, task in enumerate(works):
        if number % 3 == 0:
            task.cancel()
        if number % 7 == 0:
            await asyncio.sleep(0)
    answers = await asyncio.gather(*works, return_exceptions=True)
    found = await database.read(names)
    for number, answer in enumerate(answers):
        pair = {f"{number}-a", f"{number}-b"}
        if isinstance(answer, asyncio.CancelledError):
            assert pair <= found or not pair & found, "whole or not at all"
        else:
            assert pair <= found
    assert sum(isinstance(answer, asyncio.CancelledError) for answer in answers) == 20
    assert await database.write(add("after")) == "after"


async def test_closing_lets_what_was_asked_finish(url: str) -> None:
    database = open_at(url)
    await migrate(database)
    if url.startswith("postgresql:"):
        await database.write(add("asked"))
    else:
        asked = asyncio.ensure_future(database.write(add("asked")))
        await asyncio.sleep(0)
        await database.close()
        await asked
    await database.close()
    again = open_at(url)
    assert await again.read(names) == {"asked"}
    await again.close()


async def test_closing_twice_is_closing_once(database: Database) -> None:
    await database.close()
    await database.close()
