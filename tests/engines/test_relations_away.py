"""Relations in tables, when the database is away: nobody may, and the sentence says why."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.engines.relation_engines import InTables, parsed
from tests.servers.postgres import Postgres as Server
from tests.store.lent import lent_url
from tests.store.places import FILE, SHARED, open_at
from toolgate.caller import Caller
from toolgate.errors import RelationsUnavailable
from toolgate.store import tables
from toolgate.store.database import Database

pytestmark = pytest.mark.req("G7")
ANN = Caller(tenant="acme", user="ann")


@pytest.fixture(params=SHARED)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    async with AsyncExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'toolgate.db'}"
        if request.param != FILE:
            server: Server = request.getfixturevalue("postgres")
            url = await stack.enter_async_context(lent_url(server))
        opened = open_at(url)
        stack.push_async_callback(opened.close)
        await opened.write(lambda one: tables.relations.create(one, checkfirst=True))
        yield opened


async def test_a_database_that_fails_is_a_no_and_heals(database: Database) -> None:
    engine = InTables(database)
    await engine.put("acme", parsed("tool:pay#owner@user:ann"))
    assert await engine.relations.executable(ANN, ["pay", "read"]) == {"pay"}
    assert engine.relations.health().ok

    await database.write(tables.relations.drop)
    for tools in (["pay"], ["pay", "read"]):
        with pytest.raises(RelationsUnavailable) as refused:
            await engine.relations.executable(ANN, tools)
        assert "SELECT" not in str(refused.value)
    assert not engine.relations.health().ok

    await database.write(tables.relations.create)
    assert await engine.relations.executable(ANN, ["pay"]) == frozenset()
    assert engine.relations.health().ok


async def test_a_closed_database_is_a_no(database: Database) -> None:
    engine = InTables(database)
    await database.close()
    with pytest.raises(RelationsUnavailable):
        await engine.relations.executable(ANN, ["pay"])
