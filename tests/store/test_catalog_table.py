"""Definitions in the database: seeded again and again, never against an operator."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from tests.store.places import open_at
from toolgate.sources.database import DatabaseSource
from toolgate.store.catalog import CatalogTable, Row
from toolgate.store.database import Database
from toolgate.store.directory import TableDirectory
from toolgate.store.migrate import migrate
from toolgate.store.tables import tool_catalog
from toolgate.tenancy.changes import SetTenantFlag, SetToolFlag
from toolgate.tools.table import table

pytestmark = pytest.mark.req("D1", "C5")


def row(name: str = "echo", **fields: Any) -> Row:
    schema = {"type": "object", "properties": {"zeta": {}, "alpha": {"default": 1.5}}}
    return Row({"name": name, "description": "Says it.", "input_schema": schema} | fields, "agent")


def stored(connection: Connection) -> list[dict[str, Any]]:
    found = connection.execute(sa.select(tool_catalog).order_by(tool_catalog.c.name))
    return [dict(one) for one in found.mappings()]


async def test_a_definition_comes_back_as_it_was_in_its_own_order(database: Database) -> None:
    catalog = CatalogTable(database)
    given = row(effect="pure", tags=["a", "é"], nothing=None)
    await catalog.seed([given])
    found = await catalog.rows()
    assert found == [given]
    assert list(found[0].definition) == list(given.definition)
    assert list(found[0].definition["input_schema"]["properties"]) == ["zeta", "alpha"]


async def test_definitions_are_listed_by_name(database: Database) -> None:
    catalog = CatalogTable(database)
    await catalog.seed([row("b"), row("c"), row("a")])
    assert [found.definition["name"] for found in await catalog.rows()] == ["a", "b", "c"]


async def test_seeding_nothing_changes_nothing(database: Database) -> None:
    await CatalogTable(database).seed([])
    assert await CatalogTable(database).rows() == []
    assert await TableDirectory(database).revision() == 0


async def test_seeding_the_same_again_changes_nothing_at_all(database: Database) -> None:
    catalog, directory = CatalogTable(database), TableDirectory(database)
    seeds = [Row(row.seed, row.source) for row in table().values()]
    await catalog.seed(seeds)
    before, revision = await database.read(stored), await directory.revision()
    await catalog.seed(seeds)
    assert await database.read(stored) == before
    assert await directory.revision() == revision == 1


async def test_a_second_start_changes_what_is_said_and_no_operators_flag(
    database: Database,
) -> None:
    catalog, directory = CatalogTable(database), TableDirectory(database)
    await catalog.seed([row("on"), row("off"), row("unsaid")])
    flags = (SetToolFlag("on", enabled=True), SetToolFlag("off", enabled=False))
    await directory.put((*flags, SetTenantFlag("acme", "on", enabled=False)))

    schema = {"type": "object", "properties": {"new": {"type": "string"}}}
    later = [
        row(name, description="Says it better.", input_schema=schema, enabled=True)
        for name in ("on", "off", "unsaid")
    ]
    await catalog.seed(later)

    rows = {one["name"]: one for one in await database.read(stored)}
    assert {one["description"] for one in rows.values()} == {"Says it better."}
    assert all(one["params"] == schema for one in rows.values())
    assert {name: one["enabled"] for name, one in rows.items()} == {
        "on": True,
        "off": False,
        "unsaid": None,
    }
    assert await catalog.rows() == sorted(later, key=lambda one: one.definition["name"])
    world = await directory.load()
    assert world.everyone.flags == {"on": True, "off": False}
    assert world.flags("acme") == {"on": False}


async def test_a_changed_definition_raises_the_revision(database: Database) -> None:
    catalog, directory = CatalogTable(database), TableDirectory(database)
    await catalog.seed([row()])
    await catalog.seed([row(description="Other words.")])
    assert await directory.revision() == 2


async def test_a_flag_on_a_tool_that_is_defined_elsewhere_is_no_definition(
    database: Database,
) -> None:
    catalog, directory = CatalogTable(database), TableDirectory(database)
    await directory.put((SetToolFlag("mine", enabled=False),))
    await directory.put((SetTenantFlag("acme", "theirs", enabled=True),))
    assert await catalog.rows() == []
    await catalog.seed([row("mine")])
    assert await catalog.rows() == [row("mine")]
    assert (await directory.load()).everyone.flags == {"mine": False}


async def test_a_definition_that_was_dropped_from_the_seeds_stays(database: Database) -> None:
    catalog = CatalogTable(database)
    await catalog.seed([row("old"), row("kept")])
    await catalog.seed([row("kept")])
    assert [found.definition["name"] for found in await catalog.rows()] == ["kept", "old"]


async def test_nodes_that_seed_at_once_agree(url: str) -> None:
    nodes = [open_at(url) for _ in range(4)]
    await migrate(nodes[0])
    rows = [row(f"tool{number}") for number in range(50)]
    await asyncio.gather(*(CatalogTable(node).seed(rows) for node in nodes))
    assert len(await CatalogTable(nodes[0]).rows()) == 50
    assert await TableDirectory(nodes[0]).revision() >= 1
    await asyncio.gather(*(node.close() for node in nodes))


async def test_the_default_catalog_is_read_back_as_specs(database: Database) -> None:
    catalog = CatalogTable(database)
    seeds = list(table().values())
    await catalog.seed([Row(seed.definition, seed.source) for seed in seeds])
    specs = await DatabaseSource(catalog, builtin=["*"]).load()
    assert {spec.name for spec in specs} == {seed.definition["name"] for seed in seeds}
