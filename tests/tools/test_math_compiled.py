"""Functions of floats and arrays: the same as the exact value, whatever computes them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.watched import watched
from toolgate.errors import ToolError
from toolgate.tools.math.evaluate import evaluate
from toolgate.tools.math.expression import parse
from toolgate.tools.math.vocabulary import FUNCTIONS

np = pytest.importorskip("numpy", reason="skipped: no tools-math")
compiled: Any = pytest.importorskip("toolgate.tools.math.compiled")
pytestmark = pytest.mark.req("T1", "T5")

NAMES = ("x", "y")
# Every function that has a meaning for floats.
EVERY = (
    "abs(-x) + sign(y) + floor(x) + ceil(x) + trunc(y) + sqrt(x) + cbrt(y)",
    "exp(x) + expm1(y) + log1p(x) + log2(x) + log10(y) + log(x) + log(y, 3)",
    "sin(x) + cos(y) + tan(x) + asin(x/9) + acos(y/9) + atan(x) + atan2(x, y)",
    "sinh(x) + cosh(y) + tanh(x) + asinh(x) + acosh(y + 1) + atanh(x/9) + degrees(x) + radians(y)",
    "gamma(x) + lgamma(y) + erf(x) + erfc(y) + mod(x, y) + x // y + -x % y",
    "min(x, y, 2) + max(x, y) + sum(x, y, 1) + prod([x, y]) + mean(x, y) + hypot(x, y)",
    "pow(x, y) + root(x, 3) + round(x, 1) + round(y) + clamp(x, 2, 3) + x^3 + y**-2 + x^y",
    "if(x < y < 3 and not x > 2, x, y) + (x != y) + (x if x >= 2 or y <= 1 else 3)",
    "0 < x < y < 3 < 4",
    "3 < x",
    "pi + e + tau + phi + true",
)
NOT_FOR_FLOATS = {"gcd", "lcm", "comb", "perm", "bitxor", "median", "factorial"}


def test_no_function_is_forgotten() -> None:
    text = " ".join(EVERY)
    assert [
        name for name in FUNCTIONS if f"{name}(" not in text and name not in NOT_FOR_FLOATS
    ] == []


@given(x=st.floats(0.1, 4), y=st.floats(0.1, 4), text=st.sampled_from(EVERY))
def test_plain_functions_and_arrays_give_the_value(x: float, y: float, text: str) -> None:
    expression = parse(text)
    plain = compiled.scalar_function(expression, NAMES)(x, y)
    packed = compiled.packed_function(expression, NAMES)([x, y])
    array = compiled.array_function(expression, NAMES)(np.array([x, x]), np.array([y, y]))
    assert plain == packed
    assert math.isclose(plain, float(np.broadcast_to(array, (2,))[1]), rel_tol=1e-9, abs_tol=1e-9)
    exact = float(evaluate(expression, {"x": x, "y": y}))
    assert math.isclose(plain, exact, rel_tol=1e-9, abs_tol=1e-9)


def test_what_numba_compiles_gives_the_same() -> None:
    pytest.importorskip("numba", reason="skipped: no tools-math")
    expressions = tuple(parse(text) for text in EVERY)
    into = np.zeros(len(EVERY))
    compiled.packed_system(expressions, NAMES, jit=True)(np.array([1.7, 1.3]), into)
    plain = [compiled.scalar_function(one, NAMES)(1.7, 1.3) for one in expressions]
    assert np.allclose(into, plain, rtol=1e-12)
    divided = compiled.scalar_function(parse("x / (y - y) + 0"), NAMES, jit=True)
    assert divided(1.0, 1.0) == math.inf


def test_a_function_is_made_once() -> None:
    one = compiled.array_function(parse("x + 1"), ("x",))
    assert compiled.array_function(parse("x + 1"), ("x",)) is one
    assert compiled.array_function(parse("x + 1"), ("x", "y")) is not one


def test_what_is_in_the_middle_is_computed_once() -> None:
    text = "x"
    for _ in range(20):
        text = f"1<({text})<3"
    assert compiled.array_function(parse(text), ("x",))(np.array([2.0])).shape == (1,)


@pytest.mark.parametrize("text", ["gcd(x, 2)", "x << 1", "~x", "x & 1", "median(x, 2)", "9" * 400])
def test_what_floats_have_no_meaning_for_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="Column"):
        compiled.scalar_function(parse(text), ("x",))


def test_names_of_callers_reach_nothing() -> None:
    names = ("open", "print", "given0", "values", "where")
    expression = parse(" + ".join(names))
    with watched() as seen:
        function = compiled.scalar_function(expression, names)
        assert function(1.0, 2.0, 3.0, 4.0, 5.0) == 15
    assert set(seen) <= {"compile", "exec"}
    assert function.__globals__["__builtins__"] == {}
    assert not set(names) & set(function.__code__.co_names)
