"""The store is taken away: no record, no side effect; and everything that waits is kept."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import resource
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from tests.servers.postgres import Postgres as Server
from tests.store.entries import entry, pure
from tests.store.places import FILE, SHARED, open_at
from toolgate import Caller, Toolgate, tool
from toolgate.errors import SettingsInvalid, StoreUnavailable
from toolgate.ledger.state import State
from toolgate.settings.settings import Settings, Store
from toolgate.store import postgres as postgres_
from toolgate.store.journal import TableJournal
from toolgate.store.migrate import migrate
from toolgate.store.postgres import Postgres
from toolgate.store.records import call_pages

pytestmark = pytest.mark.req("D1", "O2")
CALLER = Caller(tenant="acme", agent="clerk")
PASSWORD = "s3cret-pass"  # noqa: S105  a canary
CROWD = 10_000


@contextmanager
def nothing_can_be_written() -> Generator[None]:
    """The kernel refuses every write to a file, as a full disk would; root is no exception."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def stopped(server: Server) -> Generator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


class Fragile(NamedTuple):
    """A store, and a block in which it is away."""

    url: str
    away: Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=SHARED)
def fragile(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Fragile]:
    if request.param == FILE:
        yield Fragile(f"sqlite:///{tmp_path / 'toolgate.db'}", nothing_can_be_written)
    else:
        # One of its own: the session's server is needed by others.
        shared: Server = request.getfixturevalue("postgres")
        with type(shared)() as server:
            url = server.dsn.replace("toolgate@", f"toolgate:{PASSWORD}@")
            yield Fragile(url, lambda: stopped(server))


def on_disk(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.sum(call_pages.c.calls))).scalar() or 0


async def test_an_outage_is_told_without_a_statement_a_place_or_a_password(
    fragile: Fragile,
) -> None:
    database = open_at(fragile.url)
    await migrate(database)
    journal = TableJournal(database)
    with fragile.away():
        with pytest.raises(StoreUnavailable) as refused:
            await journal.begin(entry(user="canary-user"))
        assert refused.value.retryable
        said = (
            f"{refused.value!s} {refused.value!r} {refused.value.__cause__} {refused.value.details}"
        )
        for secret in ("INSERT", "tool_execution_log", "canary-user", PASSWORD, "toolgate.db", "@"):
            assert secret not in said
    await journal.begin(entry())
    assert len(await journal.entries("acme")) == 1
    await database.close()


async def test_the_drivers_own_words_would_have_told_it(postgres: Server) -> None:
    """The control: without `outage`, statement and values are in the error's text."""
    engine = create_async_engine(postgres.dsn.replace("postgresql:", "postgresql+asyncpg:"))
    with pytest.raises(DBAPIError) as raw:
        async with engine.connect() as connection:
            await connection.execute(sa.text("SELECT :user FROM nowhere"), {"user": "canary-user"})
    assert "nowhere" in str(raw.value)
    assert "canary-user" in str(raw.value)
    await engine.dispose()


async def test_what_waits_goes_on_waiting_until_the_store_is_back(fragile: Fragile) -> None:
    database = open_at(fragile.url)
    await migrate(database)
    journal = TableJournal(database)
    noted = [pure() for _ in range(5)]
    for one in noted[:3]:
        journal.note(one)
    with fragile.away():
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await journal.drain()
        for one in noted[3:]:
            journal.note(one)
    found = await journal.entries("acme")
    assert [one.call_id for one in found] == [one.call_id for one in reversed(noted)]
    assert await database.read(on_disk) == 5
    await database.close()


async def test_closing_without_a_store_says_what_could_not_be_kept(fragile: Fragile) -> None:
    database = open_at(fragile.url)
    await migrate(database)
    journal = TableJournal(database)
    journal.start()
    journal.note(pure())
    with fragile.away(), pytest.raises(StoreUnavailable):
        await journal.close()
    await journal.close()
    assert await database.read(on_disk) == 1
    await database.close()


@pytest.mark.req("S3")
async def test_without_a_record_nothing_runs(fragile: Fragile, tmp_path: Path) -> None:
    """A side effect at once; a pure call as soon as too many wait to be written."""
    ran: list[str] = []

    @tool(effect="irreversible")
    async def send() -> None:
        """Send it."""
        ran.append("send")

    @tool(effect="pure")
    async def look() -> None:
        """Look."""
        ran.append("look")

    settings = Settings(store=Store(url=fragile.url), root=tmp_path)
    async with Toolgate.open(settings) as gate:
        gate.add(send, look)
        await gate.call("look", caller=CALLER)
        await gate.call("send", caller=CALLER)
        assert ran == ["look", "send"]
        with fragile.away():
            with pytest.raises(StoreUnavailable):
                await gate.call("send", caller=CALLER)
            while not gate.journal.crowded():
                await gate.call("look", caller=CALLER)
            before = len(ran)
            for _ in range(5):
                with pytest.raises(StoreUnavailable):
                    await gate.call("look", caller=CALLER)
            assert len(ran) == before >= CROWD
            assert ran.count("send") == 1
        await gate.call("look", caller=CALLER)
        await gate.call("send", caller=CALLER)
        assert ran.count("send") == 2
    database = open_at(fragile.url)
    found = await TableJournal(database).entries("acme", limit=2 * CROWD)
    done = [one for one in found if one.tool == "look" and one.state is State.SUCCEEDED]
    assert len(done) == ran.count("look")
    await database.close()


@pytest.mark.req("S3")
async def test_a_server_that_is_only_to_be_read_lets_nothing_happen(
    postgres: Server, tmp_path: Path
) -> None:
    """As one that an operator, a full disk or a failover has made so."""
    ran: list[str] = []

    @tool(effect="irreversible")
    async def send() -> None:
        """Send it."""
        ran.append("send")

    @tool(effect="irreversible", execution="queued")
    async def send_later() -> None:
        """Send it, by a worker."""
        ran.append("send_later")

    with type(postgres)() as server:
        settings = Settings(store=Store(url=server.dsn), root=tmp_path)
        async with Toolgate.open(settings) as gate:
            gate.add(send, send_later)
            for name in ("send", "send_later"):
                assert (await gate.call(name, caller=CALLER)).ok
            await only_read(server, "on")
            for name in ("send", "send_later") * 3:
                with pytest.raises(StoreUnavailable, match="can only be read now"):
                    await gate.call(name, caller=CALLER)
            assert len(ran) == 2
            await only_read(server, "off")
            for name in ("send", "send_later"):
                assert (await gate.call(name, caller=CALLER)).ok
        assert sorted(ran) == ["send", "send", "send_later", "send_later"]


async def only_read(server: Server, word: str) -> None:
    """What holds from now on, for those who are connected, too."""
    line = await asyncpg.connect(server.dsn)
    try:
        await line.execute("SET default_transaction_read_only = off")
        await line.execute(f"ALTER SYSTEM SET default_transaction_read_only = {word}")
        await line.execute("SELECT pg_reload_conf()")
    finally:
        await line.close()
    async with asyncio.timeout(20):
        while True:
            line = await asyncpg.connect(server.dsn)
            found = await line.fetchval("SHOW default_transaction_read_only")
            await line.close()
            if found == word:
                return
            await asyncio.sleep(0.02)


async def test_many_who_find_the_store_away_are_all_told(fragile: Fragile) -> None:
    database = open_at(fragile.url)
    await migrate(database)
    with fragile.away():
        answers = await asyncio.gather(
            *(TableJournal(database).begin(entry()) for _ in range(64)), return_exceptions=True
        )
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert list(await TableJournal(database).entries("acme")) == []
    await database.close()


async def test_a_full_disk_can_be_read_and_a_server_that_is_gone_says_so(fragile: Fragile) -> None:
    database = open_at(fragile.url)
    await migrate(database)
    with fragile.away():
        if fragile.url.startswith("postgresql:"):
            with pytest.raises(StoreUnavailable):
                await database.read(on_disk)
        else:
            assert await database.read(on_disk) == 0
    assert await database.read(on_disk) == 0
    await database.close()


async def test_a_statement_by_itself_finds_the_store_when_it_is_back(fragile: Fragile) -> None:
    """Its connection slept through a restart; the first to ask afterwards is answered."""
    database = open_at(fragile.url)
    await migrate(database)
    question = "SELECT count(*) FROM call_pages"
    for _ in range(2):
        await asyncio.gather(*(database.ask(question) for _ in range(8)))
        with fragile.away():
            if fragile.url.startswith("postgresql:"):
                with pytest.raises(StoreUnavailable):
                    await database.ask(question)
        assert [tuple(row) for row in await database.ask(question)] == [(0,)]
    await database.close()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://toolgate:{password}@127.0.0.1:{port}/nowhere", "InvalidCatalogNameError"),
        ("postgresql://nobody:{password}@127.0.0.1:{port}/postgres", "Invalid"),
        ("postgresql://toolgate:{password}@127.0.0.1:1/postgres", "ConnectionRefusedError|OSError"),
        ("postgresql://toolgate:{password}@127.0.0.1:{port}/postgres?sslmode=require", "Conn"),
        (
            "postgresql://toolgate:{password}@127.0.0.1:{port}/postgres?no_such_option=1",
            "Undefined",
        ),
        ("postgresql://toolgate:{password}@does-not-exist.invalid/postgres", "gaierror"),
    ],
)
async def test_an_address_that_does_not_work_is_told_by_its_kind(
    postgres: Server, url: str, kind: str
) -> None:
    database = Postgres(url.format(password=PASSWORD, port=postgres.port))
    with pytest.raises(StoreUnavailable, match=kind) as refused:
        await migrate(database)
    assert PASSWORD not in str(refused.value)
    assert refused.value.__cause__ is None
    await database.close()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://toolgate:{PASSWORD}@127.0.0.1:a-port/postgres",
        f"postgresql://toolgate:and/{PASSWORD}@127.0.0.1/postgres",
        f"postgresql://toolgate@[::1/postgres?password={PASSWORD}",
    ],
)
async def test_an_address_that_cannot_be_read_is_a_setting_to_correct(url: str) -> None:
    database = Postgres(url)
    with pytest.raises(SettingsInvalid, match=r"store\.url: write postgresql://") as refused:
        await migrate(database)
    assert PASSWORD not in str(refused.value)
    assert "and/" not in str(refused.value)
    await database.close()


async def test_the_options_of_an_address_are_the_drivers_own(postgres: Server) -> None:
    database = Postgres(f"{postgres.dsn}?sslmode=prefer&application_name=proof")
    name = await database.read(
        lambda connection: connection.exec_driver_sql("SHOW application_name").scalar()
    )
    assert name == "proof"
    await database.close()


async def test_a_pool_that_is_used_up_is_an_outage_for_whoever_comes_next(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_, "_WAIT_SECONDS", 0)
    database = Postgres(postgres.dsn)
    holder = await asyncpg.connect(postgres.dsn)
    await holder.execute("SELECT pg_advisory_lock(7)")

    def wait(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7)")

    writes = [asyncio.ensure_future(database.write(wait)) for _ in range(13)]
    done, stuck = await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
    assert [type(one.exception()) for one in done] == [StoreUnavailable]
    await holder.close()
    await asyncio.gather(*stuck)
    await database.close()
