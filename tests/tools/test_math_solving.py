"""What solves equations: it does, exactly, without reading text, and its process can be ended."""

import math
from collections.abc import AsyncGenerator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from tests.house import until
from tests.tools.means import means, no_sandbox
from toolgate.errors import ToolError
from toolgate.tools.math import symbolic_solve as tool
from toolgate.tools.math.evaluate import evaluate
from toolgate.tools.math.expression import parse
from toolgate.tools.math.symbolic_solve import symbolic_solve
from toolgate.tools.working.pool import Workers

sympy: Any = pytest.importorskip("sympy", reason="skipped: no tools-math")
solve: Any = pytest.importorskip("toolgate.tools.math.solving").solve
pytestmark = pytest.mark.req("T1")
CALL: Any = None
# Nothing solves it, and every way is tried in turn, for seconds.
SLOW = "tan(x)*exp(x) + sin(x^2) = log(x + 2)*cosh(x)"


@pytest_asyncio.fixture
async def workers() -> AsyncGenerator[Workers]:
    """None is started yet."""
    found = Workers(no_sandbox)
    yield found
    await found.close()


@given(st.lists(st.fractions(-9, 9, max_denominator=6), min_size=1, max_size=4, unique=True))
def test_a_polynomial_has_the_roots_that_it_was_made_of(wanted: list[Fraction]) -> None:
    text = " * ".join(f"(x - ({one.numerator}/({one.denominator})))" for one in wanted)
    told = solve([f"{text} = 0"], ["x"], "complex")
    found = [Fraction(one["x"]["exact"]) for one in told["solutions"]]
    assert found == sorted(wanted)


@given(
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    st.lists(st.integers(-5, 5), min_size=4, max_size=4),
)
def test_a_linear_system_is_solved_by_what_it_was_made_of(
    point: tuple[int, int], rows: list[int]
) -> None:
    a, b, c, d = rows
    if a * d == b * c:
        return
    x, y = point
    sides = [f"{a}*x + {b}*y = {a * x + b * y}", f"{c}*x + {d}*y = {c * x + d * y}"]
    told = solve(sides, ["x", "y"], "real")
    assert [{name: one[name]["exact"] for name in one} for one in told["solutions"]] == [
        {"x": str(x), "y": str(y)}
    ]


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("x^5 - 3x + 1", "complex"),
        ("x^4 + x + 1", "complex"),
        ("x^3 - 3x + 1", "complex"),
        ("x^10 - 1", "complex"),
        ("exp(2x) - 3exp(x) + 2", "real"),
        ("sqrt(x + 3) - x + 3", "real"),
        ("abs(x - 3) - 2", "real"),
        ("log(x, 2) - 5", "real"),
    ],
)
def test_every_solution_solves_it(text: str, domain: str) -> None:
    told = solve([text], ["x"], domain)
    assert told["count"] > 0
    x = sympy.Symbol("x")
    side = {
        "x^5 - 3x + 1": x**5 - 3 * x + 1,
        "x^4 + x + 1": x**4 + x + 1,
        "x^3 - 3x + 1": x**3 - 3 * x + 1,
        "x^10 - 1": x**10 - 1,
        "exp(2x) - 3exp(x) + 2": sympy.exp(2 * x) - 3 * sympy.exp(x) + 2,
        "sqrt(x + 3) - x + 3": sympy.sqrt(x + 3) - x + 3,
        "abs(x - 3) - 2": sympy.Abs(x - 3) - 2,
        "log(x, 2) - 5": sympy.log(x) / sympy.log(2) - 5,
    }[text]
    for one in told["solutions"]:
        number = complex(*one["x"].get("complex", (one["x"]["numeric"], 0)))
        assert abs(complex(sympy.N(side.subs(x, number)))) < 1e-9


@pytest.mark.parametrize(
    "text", ["x^2 = 2", "x^3 - 15x - 4 = 0", "pi*x^2 = 50", "e^(2x) = 7", "x^3 = 5", "2^x = 20"]
)
def test_an_exact_solution_reads_as_an_expression(text: str) -> None:
    told = solve([text], ["x"], "real")
    assert told["method"] == "exact"
    for one in told["solutions"]:
        number = float(evaluate(parse(one["x"]["exact"]), {}))
        assert math.isclose(number, one["x"]["numeric"], rel_tol=1e-12)


def test_what_nothing_solves_is_searched_for() -> None:
    told = solve(["floor(x) = x/2 + 1"], ["x"], "real")
    assert told["method"] == "numeric"
    assert {one["x"]["numeric"] for one in told["solutions"]} >= {2.0}
    assert "searching" in told["notes"][0]


def test_no_text_reaches_sympy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sympy.parsing.sympy_parser as parser  # noqa: PLC0415  where its text is read

    def refuse(*_given: Any, **_named: Any) -> None:
        raise AssertionError("a text was read")

    # Its own names of units are texts, and read once: when something first asks for them.
    import_module("sympy.physics.units")
    monkeypatch.setattr(parser, "parse_expr", refuse)
    monkeypatch.setattr(parser, "eval_expr", refuse)
    with pytest.raises(AssertionError):
        sympy.sympify("x + 1")
    told = solve(["x^2*a + sqrt(y)*x = 0.5*I", "a = 2"], ["x", "a"], "complex")
    assert told["count"] > 0
    assert solve(["x^2 < abs(x) + 2"], ["x"], "real")["set"] == "(-2, 2)"


async def test_a_solver_that_hangs_is_ended_and_the_next_call_is_fine(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands = means(workers=workers)
    pid = (await workers.run("toolgate.testing.working:surroundings", {}, seconds=30))["pid"]
    monkeypatch.setattr(tool, "SECONDS", 30.0)
    first = await symbolic_solve(stands, CALL, equations="x^2 = 9")
    assert [one["x"]["exact"] for one in first["solutions"]] == ["-3", "3"]
    monkeypatch.setattr(tool, "SECONDS", 0.3)
    with pytest.raises(ToolError, match="was ended"):
        await symbolic_solve(stands, CALL, equations=SLOW)
    await until(lambda: not Path(f"/proc/{pid}").exists())
    monkeypatch.setattr(tool, "SECONDS", 30.0)
    assert (await symbolic_solve(stands, CALL, equations="x^2 = 9"))["count"] == 2
