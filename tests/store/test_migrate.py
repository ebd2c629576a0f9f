# pyright: reportPrivateUsage=false
"""A database is brought to this version whole, or left as it was; a half state is refused."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, event

from tests.servers.postgres import Postgres as Server
from tests.store.child import child
from tests.store.places import FILE, SHARED, fresh_url, open_at
from toolgate import clock
from toolgate.errors import StoreMismatch
from toolgate.store import proof, upgrade
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.store.metadata import metadata
from toolgate.store.migrate import VERSION, _create, migrate, state
from toolgate.store.records import tool_execution_log
from toolgate.store.seals import Sealer
from toolgate.store.sqlite import Sqlite
from toolgate.store.tables import tenants
from toolgate.store.upgrade import known_versions
from toolgate.tenancy.capsule import Capsule, Mode
from toolgate.tenancy.changes import SetTenantFlag
from toolgate.tenancy.keys import Key, Role

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


def other_default(*compared: Any) -> bool:
    """By its text: alembic's own way cannot compare JSON on PostgreSQL, nor '' on SQLite."""
    _context, _inspected, _column, found, _expected, rendered = compared
    plain = [(text or "").partition("::")[0].strip("()'") for text in (found, rendered)]
    return (found is None) != (rendered is None) or plain[0] != plain[1]


@pytest.mark.parametrize("make", [upgrade.upgrade, _create], ids=["migrations", "at once"])
async def test_the_migrations_make_exactly_the_tables_that_the_code_uses(
    url: str, make: Callable[[Connection], None]
) -> None:
    def differences(connection: Connection) -> object:
        options = {"compare_type": True, "compare_server_default": other_default}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with opened(url) as database:
        await database.write(make)
        assert await database.read(differences) == []


def _text(told: object) -> str:
    """A clause is shown as its words, not as an object at some address."""
    if isinstance(told, dict):
        of = cast("dict[str, object]", told)
        return repr({name: _text(value) for name, value in of.items()})
    return str(told) if isinstance(told, sa.ClauseElement) else repr(told)


def whole(connection: Connection) -> dict[str, Any]:
    """All that a server tells of every table; the order of columns is nobody's affair."""
    inspector = sa.inspect(connection)

    def told(table: str) -> dict[str, Any]:
        rows: dict[str, list[Any]] = {
            "columns": list(inspector.get_columns(table)),
            "indexes": list(inspector.get_indexes(table)),
            "foreign keys": list(inspector.get_foreign_keys(table)),
            "unique": list(inspector.get_unique_constraints(table)),
            "checks": list(inspector.get_check_constraints(table)),
        }
        found: dict[str, Any] = {kind: sorted(map(_text, each)) for kind, each in rows.items()}
        return found | {
            "key": inspector.get_pk_constraint(table),
            "options": inspector.get_table_options(table),
        }

    return {table: told(table) for table in inspector.get_table_names()}


async def test_a_first_start_makes_what_the_migrations_make(url: str) -> None:
    """Down to the last key: later migrations rest on it."""
    async with opened(url) as database:
        await database.write(upgrade.upgrade)
        migrated = await database.read(whole)
        assert await database.read(versions) == [VERSION]
        await database.write(metadata.drop_all)
        await database.write(run("DROP TABLE alembic_version"))
        assert await database.read(whole) == {}
        await migrate(database)
        assert await database.read(whole) == migrated
        assert await database.read(versions) == [VERSION]


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
            assert await database.read(versions) == [VERSION]


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
                    assert await database.read(versions) == [VERSION]


async def test_databases_of_one_process_can_be_migrated_at_once(tmp_path: Path) -> None:
    databases = [Sqlite(tmp_path / f"{number}.db") for number in range(6)]
    await asyncio.gather(*map(migrate, databases))
    for database in databases:
        assert await database.read(versions) == [VERSION]
        await database.close()


async def test_a_start_that_is_given_up_does_not_hold_up_the_next(tmp_path: Path) -> None:
    abandoned, wanted = Sqlite(tmp_path / "a.db"), Sqlite(tmp_path / "b.db")
    starting = asyncio.ensure_future(migrate(abandoned))
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await migrate(wanted)
    await asyncio.gather(abandoned.close(), wanted.close())


def at_first(connection: Connection) -> None:
    """The tables of the first version, with somebody in them."""
    config = upgrade._config()
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")
    run(
        "INSERT INTO tenants (id, created_at) VALUES ('acme', '2026-01-01 00:00:00.000000')",
        "INSERT INTO agents (tenant_id, id, capsule_mode, created_at) "
        "VALUES ('acme', 'clerk', 'listed', '2026-01-01 00:00:00.000000')",
        "INSERT INTO tool_catalog (name, enabled, params, source, created_at, updated_at) "
        "VALUES ('echo', false, '{}', 'elsewhere', '2026-01-01 00:00:00.000000', "
        "'2026-01-01 00:00:00.000000')",
        "INSERT INTO tenant_tool_flags (tenant_id, tool_name, enabled, updated_at) "
        "VALUES ('acme', 'echo', true, '2026-01-01 00:00:00.000000')",
        "INSERT INTO api_keys (id, digest, role, tenant_id, agent_id, revoked, created_at) "
        "VALUES ('key_1', 'abc', 'agent', 'acme', 'clerk', false, '2026-01-01 00:00:00.000000')",
        "INSERT INTO revisions (name, value) VALUES ('world', 7)",
        "INSERT INTO tool_execution_log (call_id, tool_name, fingerprint, effect, tenant_id, "
        "agent_id, user_id, persona_id, session_id, turn_group, caller_kind, args_hash, state, "
        "duration_ms, error_code, error_message, created_ns) VALUES ('c1', 'echo', '', 'pure', "
        "'acme', 'clerk', '', '', '', '', 'agent', '', 'succeeded', 1.5, '', '', 1)",
    )(connection)
    page = sa.text("INSERT INTO call_pages VALUES ('acme', 'c0', 1, 0, :page)")
    connection.execute(page, {"page": b"x"})


async def test_a_store_of_the_first_version_keeps_all_that_is_in_it(url: str) -> None:
    async with opened(url) as database:
        await database.write(at_first)
        assert await database.read(versions) == ["0001"]
        assert await state(database) == "old"
        await migrate(database)
        assert await database.read(versions) == [VERSION]
        directory = TableDirectory(database)
        world = await directory.load()
        assert world.revision == 7
        assert world.everyone.flags == {"echo": False}
        assert world.flags("acme") == {"echo": True}
        assert world.capsule("acme", "clerk") == Capsule(Mode.LISTED)
        assert world.keys == {
            "abc": Key(id="key_1", digest="abc", role=Role.AGENT, tenant="acme", agent="clerk")
        }
        told = await database.read(
            lambda connection: connection.execute(sa.select(tool_execution_log)).mappings().all()
        )
        assert [(row["call_id"], row["decision_id"]) for row in told] == [("c1", "")]
        # What the audit did not know of before is noted now, and proven like all the rest.
        assert (await database.read(proof.verify)).problems == ()
        await Sealer(database).seal()
        proven = await database.read(proof.verify)
        assert (proven.problems, proven.records, proven.pages) == ((), 2, 1)
        await directory.put((SetTenantFlag("acme", "echo", enabled=False),))
        assert (await directory.load(world)).flags("acme") == {"echo": False}


async def test_an_upgrade_that_falls_at_any_statement_leaves_the_first_version(url: str) -> None:
    async with opened(url) as database:
        await database.write(at_first)
        before = await database.read(schema)
        falls = 0
        while await database.read(versions) == ["0001"]:
            assert await database.read(schema) == before
            with failing_at(falls), contextlib.suppress(RuntimeError):
                await migrate(database)
            falls += 1
        assert falls > 10
        assert (await TableDirectory(database).load()).flags("acme") == {"echo": True}


def test_the_version_that_a_start_expects_is_the_newest_migration() -> None:
    assert max(known_versions()) == VERSION
