"""How the two statements around a side effect find their row, also before there are any rows.

A server keeps the plan that it made for a statement; one made for an empty table may walk through
a large one later.
"""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false

import json
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.servers.postgres import Postgres as Server
from tests.store.places import fresh_url, open_at
from toolgate.ledger.state import State
from toolgate.store.calls_sqlite import _END, _SIZES, _WANTED
from toolgate.store.journal import _FIND
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite
from toolgate.store.statements import ENDS

pytestmark = pytest.mark.req("D1")
TABLE = "tool_execution_log"
# What keeps every other index from coming into question.
KEEPS_AWAY = "tenant_id || '' = $"


@pytest.fixture
async def server(postgres: Server) -> AsyncGenerator[asyncpg.Connection]:
    """An empty database with this version's tables, which nobody has looked at yet."""
    async with fresh_url(postgres) as url:
        database = open_at(url)
        await migrate(database)
        await database.close()
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            yield connection
        finally:
            await connection.close()


async def searches(server: asyncpg.Connection, statement: str) -> list[dict[str, Any]]:
    """The parts of its plan that look for rows of calls."""
    await server.execute(f"PREPARE asked AS {statement}")
    try:
        many: Any = await server.fetchval(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'asked'"
        )
        values = ", ".join(["NULL"] * many)
        told: Any = await server.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE asked({values})")
    finally:
        await server.execute("DEALLOCATE asked")
    [plan] = json.loads(told)
    return [
        node
        for node in _nodes(plan["Plan"])
        if node.get("Relation Name") == TABLE and node["Node Type"] != "ModifyTable"
    ]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


async def key_of(server: asyncpg.Connection) -> str:
    name: Any = await server.fetchval(
        "SELECT conname FROM pg_constraint WHERE conrelid = $1::text::regclass AND contype = 'p'",
        TABLE,
    )
    return name


@pytest.mark.parametrize("which", ["find", *ENDS], ids=str)
async def test_a_row_is_found_by_its_id_in_a_table_that_is_still_empty(
    server: asyncpg.Connection, which: Any
) -> None:
    statement = _FIND if which == "find" else ENDS[which]
    [search] = await searches(server, statement)
    assert search["Node Type"] in {"Index Scan", "Bitmap Heap Scan"}, search
    if search["Node Type"] == "Bitmap Heap Scan":
        [search] = search["Plans"]
    assert search["Index Name"] == await key_of(server)
    assert "call_id" in search["Index Cond"]


async def test_otherwise_it_would_be_found_by_its_tenant(server: asyncpg.Connection) -> None:
    """The control."""
    found: list[str] = []
    for statement in (_FIND, *ENDS.values()):
        assert KEEPS_AWAY in statement
        [search] = await searches(server, statement.replace(KEEPS_AWAY, "tenant_id = $"))
        found.append(search.get("Index Name", search["Node Type"]))
    assert set(found) != {await key_of(server)}


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.UNKNOWN])
async def test_a_file_finds_each_of_a_group_by_its_id(
    tmp_path: Path, size: int, state: State
) -> None:
    path = tmp_path / "toolgate.db"
    database = Sqlite(path)
    await migrate(database)
    await database.close()
    with closing(sqlite3.connect(path)) as connection:
        for statement in (_END[state][size], _WANTED[size]):
            values = [None] * statement.count("?")
            rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            told = [row[3] for row in rows if TABLE in row[3]]
            assert len(told) == 1
            assert told[0].startswith(f"SEARCH {TABLE} USING")
            assert "(call_id=?)" in told[0]
