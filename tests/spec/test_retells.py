"""Whose words a tool's results are: told by its kind, what it needs and what it touches."""

from typing import Any

import pytest

from toolgate.spec.reader import read_tool
from toolgate.spec.tool import Origin, ToolSpec
from toolgate.tools.table import table

pytestmark = pytest.mark.req("P3", "X1")
# Built-in tools whose answers are their own, or say again what their caller has just said.
OWN = frozenset(
    {
        *("bayesopt", "behaviour_adjustment", "behaviour_rules", "behaviour_withdraw"),
        *("calculate", "canvas_append", "canvas_remove", "classify_text", "csv_to_json", "echo"),
        *("embed_text", "histogram", "json_parse", "json_query", "json_to_csv", "lint_python"),
        *("list_canvases", "matrix_eigenvalues", "matrix_solve", "matrix_svd", "mcmc"),
        *("memory_delete", "memory_forget", "memory_save", "memory_withdraw", "monte_carlo"),
        *("monte_carlo_native", "notify_user", "optimize", "plot_braille", "plot_function"),
        *("plot_sixel", "python_eval", "render_math", "response", "scheduler"),
        *("scheduler_cancel", "scheduler_list", "similarity_search", "solve_ode", "sql_query"),
        *("statistics", "symbolic_solve", "timestamp"),
    }
)


def spec(**fields: Any) -> ToolSpec:
    return read_tool({"name": "it", **fields}, origin=Origin("file", ""), file="it")


@pytest.mark.parametrize("kind", ["composio", "http", "mcp", "queue", "shell", "somebodys"])
def test_every_kind_that_speaks_for_somebody_else_retells(kind: str) -> None:
    assert spec(provider=kind).retells


@pytest.mark.parametrize("kind", ["builtin", "plugin", "python"])
def test_code_that_the_operator_chose_does_not(kind: str) -> None:
    assert not spec(provider=kind).retells


@pytest.mark.parametrize(
    "fields",
    [
        {"permissions": ["network"]},
        {"permissions": ["filesystem"]},
        {"permissions": ["shell"]},
        {"side_effects": ["network_access"]},
        {"side_effects": ["local_exec"]},
        {"side_effects": ["calls_llm"]},
    ],
)
@pytest.mark.parametrize("kind", ["builtin", "plugin", "python"])
def test_unless_it_says_that_it_brings_something_from_elsewhere(
    kind: str, fields: dict[str, Any]
) -> None:
    assert spec(provider=kind, **fields).retells


def test_of_every_built_in_tool_somebody_has_said_which_it_is() -> None:
    found = {
        row.name
        for row in table().values()
        if not read_tool(row.seed, origin=Origin(row.source, ""), file=row.name).retells
    }
    assert found == OWN


def test_what_stands_in_for_a_built_in_tool_under_another_name_is_the_same() -> None:
    assert spec(provider="builtin", config={"builtin": "read_output"}).retells
    assert not spec(provider="builtin", config={"builtin": "echo"}).retells
