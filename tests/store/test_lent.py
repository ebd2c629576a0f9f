"""What one test leaves in a database, the next one that is lent it does not find."""

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import open_at
from toolgate.store.directory import TableDirectory
from toolgate.tenancy.changes import AddTenant

pytestmark = pytest.mark.req("S1")


def _tables(connection: Connection) -> list[str]:
    return sa.inspect(connection).get_table_names()


async def _leave(server: Server, *statements: str) -> str:
    async with lent_url(server) as url:
        database = open_at(url)
        await TableDirectory(database).put((AddTenant("acme"),))
        for statement in statements:
            await database.write(lambda one, said=statement: one.execute(sa.text(said)))
        await database.close()
    return url


async def test_rows_are_gone_when_it_is_lent_again(postgres: Server) -> None:
    left = await _leave(postgres)
    async with lent_url(postgres) as url:
        assert url == left
        database = open_at(url)
        found = await TableDirectory(database).load()
        await database.close()
    assert found.tenants == {}
    assert found.revision == 0


async def test_one_that_was_built_differently_is_lent_to_nobody(postgres: Server) -> None:
    left = await _leave(postgres, "CREATE TABLE mine (id int)")
    async with lent_url(postgres) as url:
        assert url != left
        database = open_at(url)
        assert "mine" not in await database.read(_tables)
        await database.close()


async def test_one_column_more_or_one_table_less_is_another_build(postgres: Server) -> None:
    column = await _leave(postgres, "ALTER TABLE outbox ADD COLUMN mine int")
    dropped = await _leave(postgres, "DROP TABLE outbox")
    async with lent_url(postgres) as url:
        assert url not in {column, dropped}


async def test_who_stays_connected_is_sent_away(postgres: Server) -> None:
    async with lent_url(postgres) as url:
        database = open_at(url)
        await TableDirectory(database).put((AddTenant("acme"),))
    async with lent_url(postgres) as again:
        assert again == url
        other = open_at(again)
        asked = sa.text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        assert await other.read(lambda one: one.execute(asked).scalar()) == 0
        await other.close()
    await database.close()
