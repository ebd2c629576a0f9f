"""SQL over given tables: values keep their types, and the fence is what holds."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgate.errors import ToolError
from toolgate.tools.data import sql
from toolgate.tools.data.permitting import Permit

pytestmark = pytest.mark.req("T1", "T2")
KINDS: list[st.SearchStrategy[Any]] = [
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10),
    st.booleans(),
    st.lists(st.integers(-9, 9), max_size=3) | st.dictionaries(st.text("ab"), st.booleans()),
]


def answered(query: str, **how: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "tables": {},
        "params": [],
        "writes": False,
        "limit": 100,
        "seconds": 5,
    }
    return sql.answered(query=query, **(asked | how))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
def test_values_come_back_as_they_were(
    data: st.DataObject, kinds: list[st.SearchStrategy[Any]]
) -> None:
    columns = {f"c{at}": kind | st.none() for at, kind in enumerate(kinds)}
    rows = data.draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=5))
    found = answered("SELECT * FROM t", tables={"t": rows})
    assert found["rows"] == rows
    assert [_kinds(row) for row in found["rows"]] == [_kinds(row) for row in rows]


def _kinds(row: dict[str, Any]) -> dict[str, type]:
    return {name: type(one) for name, one in row.items()}


@settings(max_examples=40, deadline=None)
@given(
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    column=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
)
def test_any_name_is_only_a_name(name: str, column: str) -> None:
    found = answered("SELECT 1 AS one", tables={"x" + name: [{column: 1}]})
    assert found["rows"] == [{"one": 1}]


ESCAPES = [
    "ATTACH DATABASE '{file}' AS x",
    "VACUUM INTO '{file}'",
    "PRAGMA temp_store_directory = '{file}'",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
    "SELECT load_extension('{file}')",
]


@pytest.mark.parametrize("query", ESCAPES)
@pytest.mark.parametrize("writes", [False, True])
def test_no_statement_reaches_outside(query: str, writes: bool, tmp_path: Path) -> None:  # noqa: FBT001
    file = tmp_path / "stolen.db"
    with pytest.raises(ToolError, match="not a"):
        answered(query.format(file=file), tables={"t": [{"v": 1}]}, writes=writes)
    assert not file.exists()


class OpenToAll(Permit):
    """No fence."""

    def __call__(self, *_given: object) -> int:
        return sqlite3.SQLITE_OK


def test_without_the_fence_a_file_would_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "Permit", OpenToAll)
    monkeypatch.setattr(sql, "_LIMITS", {})
    file = tmp_path / "stolen.db"
    answered(f"VACUUM INTO '{file}'", tables={"t": [{"v": 1}]}, writes=True)
    assert file.exists()


def test_nothing_of_one_call_is_there_in_the_next() -> None:
    answered("CREATE TABLE kept (v); SELECT 1", writes=True)
    with pytest.raises(ToolError, match="no table kept"):
        answered("SELECT * FROM kept")
