"""Values at the edge of what there is: told as the caller's mistake, and nobody's tool is shut."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.tools.asking import ME, opened, told
from toolgate import Caller, Toolgate

matrix: Any = pytest.importorskip("toolgate.tools.native.matrix", reason="skipped: no tools-math")
pytest.importorskip("pydantic_monty", reason="skipped: no tools")
pytestmark = [pytest.mark.req("T1", "T4"), pytest.mark.asyncio(loop_scope="module")]
BIG = 1e308
ESC = "\x1b]0;pwn\x07\x9b31m\u202e\nforged"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Toolgate]:
    async with opened(Path(tmp_path_factory.mktemp("values"))) as found:
        yield found


@pytest.mark.parametrize(
    ("tool", "args", "says"),
    [
        ("python_eval", {"expression": "1<<20000"}, "4,300 digits"),
        ("python_eval", {"expression": "{'a': [10**5000]}"}, "4,300 digits"),
        ("sql_query", {"query": "select '\0'", "tables": {}}, "NUL"),
        ("sql_query", {"query": "select 1", "tables": {"t": [{"a": 2**63}]}}, "64 bits"),
        ("sql_query", {"query": "select ?", "tables": {}, "params": [2**63]}, "too large"),
        ("matrix_svd", {"matrix": [[BIG, BIG], [BIG, BIG]]}, "too large"),
    ],
)
async def test_a_value_that_cannot_be_is_refused_and_opens_no_breaker(
    gate: Toolgate, tool: str, args: dict[str, Any], says: str
) -> None:
    for _ in range(3):
        output = await gate.call(tool, args, caller=ME)
        assert output.error is not None
        assert output.error.code == "tool_error", output.error
        assert says in output.error.message


async def test_numbers_at_the_edge_are_computed_with(gate: Toolgate) -> None:
    assert (await told(gate, "python_eval", expression="(1<<20000) % 7"))["value"] == 4
    assert (await told(gate, "matrix_solve", a=[[BIG]], b=[BIG]))["x"] == [1.0]
    found = await told(gate, "matrix_eigenvalues", matrix=[[BIG, 0], [0, -BIG]])
    assert found["values"] == [BIG, -BIG]
    assert (await told(gate, "matrix_svd", matrix=[[BIG]]))["values"] == [BIG]
    rows = await told(gate, "sql_query", query="select a from t", tables={"t": [{"a": 2**63 - 1}]})
    assert rows["rows"] == [{"a": 2**63 - 1}]


@pytest.mark.parametrize("largest", [1e308, 1.7976931348623157e308, 1.0, 3.0, 5e-324])
async def test_a_matrix_is_scaled_by_a_power_of_two_that_there_is(largest: float) -> None:
    small, by = matrix.scaled(matrix.read("A", [[largest, -largest / 2]]))
    assert 1 <= abs(small).max() < 2
    assert (small * by).tolist() == [[largest, -largest / 2]]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("plot_braille", {"series": {ESC: [1, 2, 3]}, "title": ESC, "x_label": ESC}),
        ("plot_braille", {"series": [1, 2, 3], "y_label": ESC}),
        ("plot_function", {"expression": "x", "title": ESC}),
        ("histogram", {"values": [1, 2, 3], "title": ESC}),
        ("render_math", {"latex": "\\mathrm{" + ESC + "} + \\text{" + ESC + "}"}),
    ],
)
async def test_what_is_drawn_steers_no_terminal(
    gate: Toolgate, tool: str, args: dict[str, Any]
) -> None:
    text = (await told(gate, tool, **args))["text"]
    assert "pwn" in text, "the words are there"
    assert all(one.isprintable() or one == "\n" for one in text)
    assert not any(line.startswith("forged") for line in text.splitlines())


@pytest.mark.parametrize("hidden", ["\ufeff", "\u200b", "\u2060\u200e", "\x00", "\u00ad ", "\x85"])
async def test_a_formula_behind_what_nobody_sees_does_not_run(gate: Toolgate, hidden: str) -> None:
    formula = f'{hidden}=HYPERLINK("http://evil")'
    found = await told(gate, "json_to_csv", data=[{formula: formula}])
    assert found["guarded"] == 2
    kept = await told(gate, "json_to_csv", data=[{"a": f"{hidden}-5 degrees"}], guard=False)
    assert kept["guarded"] == 0
    assert (await told(gate, "json_to_csv", data=[{"a": "plain", "b": "-5"}]))["guarded"] == 0


async def test_what_a_user_tells_an_agent_another_does_not_get_from_it(gate: Toolgate) -> None:
    ann, bob = (Caller(tenant="acme", agent="clerk", user=one) for one in ("ann", "bob"))
    alone = Caller(tenant="acme", user="ann")
    await told(gate, "memory_save", ann, text="My PIN is 4711.")
    await told(gate, "memory_save", alone, text="My PIN is 4712.")
    assert "4711" in str(await told(gate, "memory_load", ann, query="PIN"))
    assert "4712" in str(await told(gate, "memory_load", alone, query="PIN"))
    for other in (bob, ME, Caller(tenant="acme", user="bob"), Caller(tenant="acme")):
        assert "471" not in str(await told(gate, "memory_load", other, query="PIN"))
    # A persona is what an operator lets users share.
    shared = [Caller(tenant="acme", agent="clerk", user=one, persona="desk") for one in ("a", "b")]
    await told(gate, "memory_save", shared[0], text="The door code is 9.")
    assert "door" in str(await told(gate, "memory_load", shared[1], query="door"))
