"""Row security on PostgreSQL: a statement that forgot its condition is about one tenant alone."""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import ast
import re
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

import toolgate
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import fresh_url
from toolgate import clock
from toolgate.errors import StoreUnavailable
from toolgate.store import upgrade
from toolgate.store.database import HOUSE, Database
from toolgate.store.metadata import Moment, metadata
from toolgate.store.migrate import _create  # pyright: ignore[reportPrivateUsage]
from toolgate.store.postgres import Postgres
from toolgate.store.row_security import columns, standing

pytestmark = pytest.mark.req("D1", "V3")
TENANTS = ("acme", "globex")
# They have only what belongs to nobody, or look at tables and not into them.
_ASKED = re.compile(r"(self\._)?database\.(read|write|ask)\(")
NOBODYS = {
    *("around.py", "catalog.py", "migrate.py", "revision.py"),
    *("row_security.py", "secret.py", "skew.py"),
}


def own(url: str) -> str:
    """The same database, for the role that made its tables."""
    return url.replace("//walled@", "//toolgate@")


def row_of(table: sa.Table, tenant: str) -> dict[str, Any]:
    """Anything that fits, so that there is one."""
    kinds: dict[type, Any] = {str: f"of {tenant}", int: TENANTS.index(tenant), float: 1.0}
    others: dict[type, Any] = {bool: False, bytes: b""}
    row: dict[str, Any] = {
        column.name: (kinds | others).get(column.type.python_type, {}) for column in table.columns
    }
    row |= {one.name: clock.utc_now() for one in table.columns if isinstance(one.type, Moment)}
    return row | {columns()[table.name]: tenant}


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Database]:
    database = Postgres(url)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
async def url(postgres: Server) -> AsyncGenerator[str]:
    """With a row of each tenant in every table that holds what is a tenant's."""
    async with lent_url(postgres, walled=True) as lent, opened(own(lent)) as owner:

        def fill(connection: Connection) -> None:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            for name in columns():
                table = metadata.tables[name]
                connection.execute(table.insert(), [row_of(table, one) for one in TENANTS])

        await owner.write(fill)
        yield lent


async def seen(database: Database, table: str, tenant: str) -> list[Collection[str]]:
    """By each of the ways to read, without any condition."""
    every = f"SELECT {columns()[table]} FROM {table}"  # noqa: S608  names of our own

    def work(connection: Connection) -> set[str]:
        return set(connection.exec_driver_sql(every).scalars())

    asked = {row[0] for row in await database.ask(every, tenant=tenant)}
    read = await database.read(work, tenant=tenant)
    return [asked, read, await database.write(work, tenant=tenant)]


@pytest.mark.parametrize("walled", [True, False], ids=["policy", "control"])
async def test_a_question_without_a_condition_shows_the_tenants_own_rows_alone(
    url: str,
    walled: bool,  # noqa: FBT001
) -> None:
    if not walled:
        async with opened(own(url)) as owner:
            off = "; ".join(f"ALTER TABLE {one} DISABLE ROW LEVEL SECURITY" for one in columns())
            await owner.write(
                lambda connection: connection.exec_driver_sql(f"DO $$ BEGIN {off}; END $$").close()
            )
    everyone = set(TENANTS)
    async with opened(url) as database:
        for table in columns():
            for tenant in TENANTS:
                expected = {tenant} if walled else everyone
                assert await seen(database, table, tenant) == [expected] * 3, table
            assert await seen(database, table, HOUSE) == [everyone] * 3, table
            nobody = set[str]() if walled else everyone
            assert await seen(database, table, "") == [nobody] * 3, table
            assert await seen(database, table, "ACME' OR '1'='1") == [nobody] * 3, table


async def test_a_change_without_a_condition_changes_the_tenants_own_rows_alone(url: str) -> None:
    changed, gone = "UPDATE shelf SET body = 'changed'", "DELETE FROM shelf"
    strange = (
        metadata.tables["shelf"]
        .insert()
        .values(row_of(metadata.tables["shelf"], "globex") | {"key": "another"})
    )

    def count(statement: str, database: Database, tenant: str) -> Any:
        return database.write(
            lambda connection: connection.exec_driver_sql(statement).rowcount, tenant=tenant
        )

    async with opened(url) as database:
        assert await count(changed, database, "acme") == 1
        assert await count(changed, database, HOUSE) == 2, "the other's was there, too"
        assert await count(gone, database, "acme") == 1
        assert await seen(database, "shelf", HOUSE) == [{"globex"}] * 3
        with pytest.raises(StoreUnavailable, match="InsufficientPrivilege"):
            await database.write(lambda one: one.execute(strange).rowcount, tenant="acme")
        assert await database.write(lambda one: one.execute(strange).rowcount, tenant="globex") == 1


async def test_a_tenant_lasts_as_long_as_its_transaction(url: str) -> None:
    """Connections go from one tenant to the next."""
    async with opened(url) as database:
        for tenant in (*TENANTS, "", HOUSE, *TENANTS, ""):
            expected = set(TENANTS) if tenant == HOUSE else {tenant} - {""}
            assert await seen(database, "approvals", tenant) == [expected] * 3


async def policies(database: Database) -> list[tuple[Any, ...]]:
    found = await database.ask(
        "SELECT relname, relrowsecurity, relforcerowsecurity, polname, polcmd::text, polpermissive,"
        " polroles::text, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)"
        " FROM pg_class JOIN pg_policy ON polrelid = pg_class.oid ORDER BY relname, polname"
    )
    return [tuple(row) for row in found]


async def test_migrations_and_a_first_start_wall_off_every_table_of_a_tenants_rows(
    postgres: Server,
) -> None:
    async with fresh_url(postgres) as url, opened(url) as database:
        await database.write(upgrade.upgrade)
        migrated = await policies(database)
        assert {(row[0], row[1], row[2]) for row in migrated} == {
            (table, True, True) for table in columns()
        }
        await database.write(metadata.drop_all)
        await database.write(
            lambda connection: connection.exec_driver_sql("DROP TABLE alembic_version").close()
        )
        await database.write(_create)
        assert await policies(database) == migrated
    whose = {"tenant_id", "tenant", "registered_by_tenant"}
    named = {name for name, table in metadata.tables.items() if whose & {*table.c.keys()}}
    assert named | {"tenants"} == set(columns())


FAULTS = {
    "a superuser": ("ALTER ROLE other SUPERUSER", "'other' is a superuser"),
    "bypassing": ("ALTER ROLE other BYPASSRLS", "'other' has BYPASSRLS"),
    "switched off": ("ALTER TABLE shelf DISABLE ROW LEVEL SECURITY", "off for shelf"),
    "opened": ("CREATE POLICY mine ON queue USING (true)", "policies of others let more"),
}


@pytest.mark.parametrize("fault", ["nothing", *FAULTS])
async def test_why_it_is_not_in_force_is_said(postgres: Server, fault: str) -> None:
    async with lent_url(postgres) as url:
        owner = await asyncpg.connect(url)
        await owner.execute("CREATE ROLE other LOGIN")
        statement, said = FAULTS.get(fault, ("SELECT 1", ""))
        await owner.execute(statement)
        try:
            async with opened(url.replace("//toolgate@", "//other@")) as database:
                problem, more = await standing(database)
        finally:
            await owner.execute("DROP ROLE other")
            await owner.close()
    assert (said in problem, bool(problem), more) == (True, bool(said), "")


def test_every_statement_says_whose_rows_it_is_about() -> None:
    """Where one says nothing, it is about rows that are nobody's."""
    silent: set[str] = set()
    known = 0
    for path in Path(toolgate.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        # To read a house as a tree takes long.
        if not _ASKED.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and _ASKED.match(f"{ast.unparse(node.func)}("):
                known += 1
                if "tenant" not in {keyword.arg for keyword in node.keywords}:
                    silent.add(path.name)
    assert known > 50
    assert silent == NOBODYS
