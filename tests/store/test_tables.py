# pyright: reportPrivateUsage=false
"""The tables are those that the code uses; a half state and another's tables are refused."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from tests.store.schemas import opened, run, schema, versions
from toolgate import clock
from toolgate.errors import StoreMismatch
from toolgate.store import upgrade
from toolgate.store.database import Database
from toolgate.store.metadata import metadata
from toolgate.store.migrate import VERSION, _create, migrate
from toolgate.store.tables import tenants
from toolgate.store.upgrade import known_versions

pytestmark = pytest.mark.req("D1")


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


def test_the_version_that_a_start_expects_is_the_newest_migration() -> None:
    assert max(known_versions()) == VERSION


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
