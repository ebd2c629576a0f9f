"""Specs from the store, as real rows of a real database."""

from pathlib import Path
from typing import Any

import pytest

from toolgate.errors import InvalidSpecs, SourceUnavailable, StoreUnavailable
from toolgate.sources.database import DatabaseSource
from toolgate.spec.tool import Origin
from toolgate.store.catalog import CatalogTable, Row
from toolgate.store.migrate import migrate
from toolgate.store.sqlite import Sqlite


class Rows:
    """Rows that are at hand."""

    def __init__(self, *definitions: dict[str, Any]) -> None:
        self._rows = [Row(definition, "agent") for definition in definitions]

    async def rows(self) -> list[Row]:
        return self._rows


class Away:
    """A store that cannot be reached."""

    async def rows(self) -> list[Row]:
        raise StoreUnavailable("The store is away.")


def builtin(name: str) -> dict[str, Any]:
    return {"name": name, "provider": "python", "config": {"builtin": name}}


@pytest.mark.req("C2", "C5")
async def test_what_was_put_into_the_store_comes_out_as_specs(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "a.db")
    try:
        await migrate(database)
        table = CatalogTable(database)
        await table.seed([Row(builtin("echo"), "agent"), Row(builtin("add"), "executor")])
        specs = await DatabaseSource(table, builtin=["*"]).load()
    finally:
        await database.close()
    assert [(spec.name, spec.origin) for spec in specs] == [
        ("add", Origin("executor", "default catalog")),
        ("echo", Origin("agent", "default catalog")),
    ]


@pytest.mark.req("C2")
async def test_only_the_built_in_tools_that_are_wanted_are_taken() -> None:
    rows = Rows(builtin("web_get"), builtin("web_put"), {"name": "other", "provider": "http"})
    source = DatabaseSource(rows, builtin=["*_get"])
    assert [spec.name for spec in await source.load()] == ["web_get", "other"]


@pytest.mark.req("C2")
async def test_a_row_cannot_name_code_that_is_not_built_in() -> None:
    rows = Rows({"name": "a", "provider": "python", "config": {"module": "os"}})
    with pytest.raises(InvalidSpecs, match="runs code on this machine"):
        await DatabaseSource(rows, builtin=["*"]).load()


@pytest.mark.req("C1", "C2")
async def test_every_row_that_cannot_be_read_is_told_by_name() -> None:
    rows = Rows({"name": "a", "timeout": "x"}, builtin("echo"), {"name": "b", "effect": "y"})
    with pytest.raises(InvalidSpecs) as refused:
        await DatabaseSource(rows, builtin=["*"]).load()
    assert [str(problem).split(" ")[1] for problem in refused.value.problems] == [
        "a.timeout",
        "b.effect",
    ]


@pytest.mark.req("C2")
async def test_a_store_that_is_away_is_an_unavailable_source() -> None:
    with pytest.raises(SourceUnavailable, match="The store is away"):
        await DatabaseSource(Away(), builtin=["*"]).load()
