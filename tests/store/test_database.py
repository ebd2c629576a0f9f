"""One way to read and one way to write, with the same promises on either server."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import open_at
from toolgate import clock
from toolgate.errors import StoreUnavailable
from toolgate.store import postgres as store_postgres
from toolgate.store.database import Database
from toolgate.store.migrate import migrate
from toolgate.store.tables import house_secrets, tenants
from toolgate.store.upsert import upsert

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


# One statement by itself.

ONE = "SELECT id, CAST($2 AS TEXT) FROM tenants WHERE id = $1"


async def test_one_statement_is_answered_with_its_rows(database: Database) -> None:
    await database.write(add("acme", "globex"))
    assert [tuple(row) for row in await database.ask(ONE, ("acme", "said"))] == [("acme", "said")]
    assert [tuple(row) for row in await database.ask(ONE, ("' OR '1'='1", "said"))] == []


async def test_one_statement_sees_what_was_committed_before_it(url: str) -> None:
    """Also by others: a side effect rests on it."""
    database, other = open_at(url), open_at(url)
    await migrate(database)
    for number in range(20):
        await other.write(add(f"t{number}"))
        assert await database.ask(ONE, (f"t{number}", "")) != []
    await asyncio.gather(database.close(), other.close())


async def test_many_statements_at_once_each_get_their_own_answer(database: Database) -> None:
    wanted = [f"t{number}" for number in range(64)]
    await database.write(add(*wanted))
    answers = await asyncio.gather(*(database.ask(ONE, (name, name)) for name in wanted))
    assert [tuple(rows[0]) for rows in answers] == [(name, name) for name in wanted]


async def test_a_statement_that_fails_spoils_nothing_for_the_next(database: Database) -> None:
    await database.write(add("acme"))
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as refused:
            await database.ask("SELECT name FROM nowhere_at_all")
        assert "nowhere_at_all" not in str(refused.value)
        assert await database.ask(ONE, ("acme", "")) != []


async def test_who_goes_away_in_the_middle_of_a_statement_takes_no_answer_of_another(
    database: Database,
) -> None:
    await database.write(add("acme", "globex"))
    for _ in range(20):
        leaving = [asyncio.ensure_future(database.ask(ONE, ("acme", ""))) for _ in range(8)]
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
        assert (await database.ask(ONE, ("globex", "")))[0][0] == "globex"
        await asyncio.gather(*leaving, return_exceptions=True)


async def test_a_closed_store_answers_no_statement(database: Database) -> None:
    await database.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.ask(ONE, ("acme", ""))


async def test_who_stands_still_in_a_transaction_keeps_nobody_from_its_rows(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_postgres, "_IDLE_SECONDS", 1)
    go_on, has_begun = threading.Event(), threading.Event()

    def lock(connection: Connection) -> None:
        upsert(connection, house_secrets, [{"name": "a", "value": b""}])
        connection.execute(sa.select(house_secrets).with_for_update()).all()

    def stand_still(connection: Connection) -> None:
        lock(connection)
        has_begun.set()
        go_on.wait(60)

    async with lent_url(postgres) as url:

        async def still() -> None:
            database = open_at(url)
            try:
                await database.write(stand_still)
            finally:
                await database.close()

        other = open_at(url)
        with ThreadPoolExecutor(1) as thread:
            stands = thread.submit(asyncio.run, still())
            try:
                assert await asyncio.to_thread(has_begun.wait, 30)
                async with asyncio.timeout(20):
                    await other.write(lock)
                assert not stands.done()
            finally:
                go_on.set()
            with pytest.raises(StoreUnavailable):
                stands.result(30)
        await other.close()
