# pyright: reportPrivateUsage=false
"""A database is brought to this version whole, or left as it was, whoever falls or starts."""

import asyncio
import contextlib
from collections.abc import Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy import Connection, event

from tests.servers.postgres import Postgres as Server
from tests.store.child import child
from tests.store.places import FILE, SHARED, fresh_url
from tests.store.schemas import opened, run, schema, versions
from tests.thorough import some
from toolgate.store import proof, upgrade
from toolgate.store.directory import TableDirectory
from toolgate.store.metadata import metadata
from toolgate.store.migrate import VERSION, migrate, state
from toolgate.store.records import tool_execution_log
from toolgate.store.seals import Sealer
from toolgate.store.sqlite import Sqlite
from toolgate.tenancy.capsule import Capsule, Mode
from toolgate.tenancy.changes import SetTenantFlag
from toolgate.tenancy.keys import Key, Role

pytestmark = pytest.mark.req("D1")


# Every statement is a place to fall at; of so many in a row, one is tried.
STRIDE = some(4, 1)


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


async def test_a_migration_that_falls_at_any_statement_leaves_nothing(url: str) -> None:
    async with opened(url) as database:
        falls = 0
        while not await database.read(schema):
            with failing_at(falls), contextlib.suppress(RuntimeError):
                await migrate(database)
            falls += STRIDE
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
            urls = [f"sqlite:///{tmp_path / str(number)}.db" for number in range(some(4, 8))]
        else:
            server: Server = request.getfixturevalue("postgres")
            urls = [
                await databases.enter_async_context(fresh_url(server)) for _ in range(some(2, 4))
            ]
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
            "abc": Key(
                id="key_1",
                digest="abc",
                role=Role.AGENT,
                tenant="acme",
                agent="clerk",
                created_ns=1_767_225_600 * 10**9,
            )
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
            falls += STRIDE
        assert falls > 10
        assert (await TableDirectory(database).load()).flags("acme") == {"echo": True}
