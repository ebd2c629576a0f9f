"""A database is brought to this version whole, or left as it was; a half state is refused."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, event

from tests.servers.postgres import Postgres as Server
from tests.store.child import child
from tests.store.places import FILE, SHARED, fresh_url, open_at
from toolgate import clock
from toolgate.errors import StoreMismatch
from toolgate.store.database import Database
from toolgate.store.migrate import VERSION, migrate
from toolgate.store.sqlite import Sqlite
from toolgate.store.tables import metadata, tenants
from toolgate.store.upgrade import known_versions

pytestmark = pytest.mark.req("D1")
Schema = dict[str, list[str]]


def schema(connection: Connection) -> Schema:
    """Every table with its columns."""
    inspector = sa.inspect(connection)
    return {
        table: sorted(column["name"] for column in inspector.get_columns(table))
        for table in inspector.get_table_names()
    }


def versions(connection: Connection) -> list[str]:
    return list(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars())


def run(*statements: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return work


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Database]:
    database = open_at(url)
    try:
        yield database
    finally:
        await database.close()


@contextmanager
def failing_at(number: int) -> Generator[None]:
    """The statement with this number is done, and then everything falls."""
    numbers = count()

    def fall(*_: object) -> None:
        if next(numbers) == number:
            raise RuntimeError("the power went")

    event.listen(sa.Engine, "after_cursor_execute", fall)
    try:
        yield
    finally:
        event.remove(sa.Engine, "after_cursor_execute", fall)


async def test_an_empty_database_gets_every_table(database: Database) -> None:
    found = await database.read(schema)
    expected = {name: sorted(table.columns.keys()) for name, table in metadata.tables.items()}
    assert found == expected | {"alembic_version": ["version_num"]}


async def test_a_second_start_changes_nothing(url: str) -> None:
    async with opened(url) as database:
        await migrate(database)
        await database.write(
            lambda connection: (
                connection.execute(
                    tenants.insert().values(id="acme", created_at=clock.utc_now())
                ).rowcount
            )
        )
        before = await database.read(schema)
    async with opened(url) as database:
        await migrate(database)
        await migrate(database)
        assert await database.read(schema) == before
        ids = await database.read(
            lambda connection: connection.execute(sa.select(tenants.c.id)).scalars().all()
        )
        assert list(ids) == ["acme"]


async def test_the_migrations_make_exactly_the_tables_that_the_code_uses(
    database: Database,
) -> None:
    def differences(connection: Connection) -> object:
        options = {"compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert await database.read(differences) == []


HALF: dict[str, tuple[str, str]] = {
    "a newer version": ("UPDATE alembic_version SET version_num = '9999'", "'9999'.*newer"),
    "tables without a version table": ("DROP TABLE alembic_version", "no version"),
    "tables without a version": ("DELETE FROM alembic_version", "no version"),
    "two versions": ("INSERT INTO alembic_version VALUES ('9998')", "2 versions"),
    "a missing table": ("DROP TABLE call_pages", "lacks call_pages"),
    "a missing column": ("ALTER TABLE agents DROP COLUMN created_at", r"agents\.created_at"),
}


@pytest.mark.parametrize(("damage", "words"), HALF.values(), ids=HALF)
async def test_a_half_state_is_refused_and_left_alone(url: str, damage: str, words: str) -> None:
    async with opened(url) as database:
        await migrate(database)
        await database.write(run(damage))
        before = await database.read(schema)
        for _ in range(2):
            with pytest.raises(StoreMismatch, match=words) as refused:
                await migrate(database)
            assert "SELECT" not in str(refused.value)
        assert await database.read(schema) == before


async def test_everything_that_is_missing_is_named_at_once(url: str) -> None:
    async with opened(url) as database:
        await migrate(database)
        drop = "ALTER TABLE tool_catalog DROP COLUMN source"
        await database.write(run("DROP TABLE call_pages", "DROP TABLE revisions", drop))
        with pytest.raises(StoreMismatch) as refused:
            await migrate(database)
        for missing in ("call_pages", "revisions", "tool_catalog.source"):
            assert missing in refused.value.message


async def test_a_table_of_the_same_name_that_is_not_ours_is_not_taken_over(url: str) -> None:
    async with opened(url) as database:
        await database.write(run("CREATE TABLE agents (spy text)"))
        with pytest.raises(StoreMismatch, match="agents"):
            await migrate(database)
        assert await database.read(schema) == {"agents": ["spy"]}


async def test_a_database_that_belongs_to_another_program_is_left_alone(url: str) -> None:
    async with opened(url) as database:
        await database.write(run("CREATE TABLE invoices (id text)"))
        with pytest.raises(StoreMismatch, match=r"tables \(invoices\).*empty one"):
            await migrate(database)
        assert await database.read(schema) == {"invoices": ["id"]}


async def test_tables_that_come_later_beside_ours_do_not_matter(url: str) -> None:
    async with opened(url) as database:
        await migrate(database)
        await database.write(run("CREATE TABLE invoices (id text)"))
        await migrate(database)
        assert (await database.read(schema))["invoices"] == ["id"]


async def test_a_migration_that_falls_at_any_statement_leaves_nothing(url: str) -> None:
    async with opened(url) as database:
        falls = 0
        while not await database.read(schema):
            with failing_at(falls), contextlib.suppress(RuntimeError):
                await migrate(database)
            falls += 1
        # Every table, at least, was a place to fall at.
        assert falls > len(metadata.tables)
        await migrate(database)


PAUSING = """
import asyncio, sys
import sqlalchemy as sa
from sqlalchemy import event
from tests.store.places import open_at
from toolgate.store.migrate import migrate

@event.listens_for(sa.Engine, "after_cursor_execute")
def pause(connection, cursor, statement, *_):
    if "CREATE TABLE agents" in statement:
        print("inside", flush=True)
        sys.stdin.readline()

asyncio.run(migrate(open_at(sys.argv[1])))
"""


async def test_a_process_killed_inside_a_migration_leaves_nothing_behind(url: str) -> None:
    with child(PAUSING, url) as migrating:
        assert migrating.hear() == "inside"
        async with opened(url) as database:
            assert await database.read(schema) == {}
            migrating.kill()
            assert await database.read(schema) == {}
            await migrate(database)
            assert await database.read(versions) == ["0001"]


STARTING = """
import asyncio, sys
from tests.store.places import open_at
from toolgate.store.migrate import migrate

async def start(url):
    database = open_at(url)
    try:
        await migrate(database)
    finally:
        await database.close()

print("ready", flush=True)
for line in sys.stdin:
    try:
        asyncio.run(start(line.strip()))
        print("up", flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


@pytest.mark.parametrize("place", SHARED)
async def test_processes_that_start_at_once_all_come_up(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with AsyncExitStack() as databases:
        if place == FILE:
            urls = [f"sqlite:///{tmp_path / str(number)}.db" for number in range(8)]
        else:
            server: Server = request.getfixturevalue("postgres")
            urls = [await databases.enter_async_context(fresh_url(server)) for _ in range(4)]
        with ExitStack() as stack:
            nodes = [stack.enter_context(child(STARTING)) for _ in range(3)]
            assert [node.hear() for node in nodes] == ["ready"] * 3
            for url in urls:
                for node in nodes:
                    node.tell(url)
                assert [node.hear() for node in nodes] == ["up"] * 3
                async with opened(url) as database:
                    assert await database.read(versions) == ["0001"]


async def test_databases_of_one_process_can_be_migrated_at_once(tmp_path: Path) -> None:
    databases = [Sqlite(tmp_path / f"{number}.db") for number in range(6)]
    await asyncio.gather(*map(migrate, databases))
    for database in databases:
        assert await database.read(versions) == ["0001"]
        await database.close()


async def test_a_start_that_is_given_up_does_not_hold_up_the_next(tmp_path: Path) -> None:
    abandoned, wanted = Sqlite(tmp_path / "a.db"), Sqlite(tmp_path / "b.db")
    starting = asyncio.ensure_future(migrate(abandoned))
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await migrate(wanted)
    await asyncio.gather(abandoned.close(), wanted.close())


def test_the_version_that_a_start_expects_is_the_newest_migration() -> None:
    assert max(known_versions()) == VERSION
