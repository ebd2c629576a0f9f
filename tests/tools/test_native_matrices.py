"""Matrices: what is found solves what was asked, and the parts make the whole again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgate.errors import ToolError

linear: Any = pytest.importorskip("toolgate.tools.native.linear", reason="skipped: no tools-math")
np: Any = pytest.importorskip("numpy")
pytestmark = pytest.mark.req("T1", "T5")

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda one: round(one, 3))


@st.composite
def matrices(draw: st.DrawFn, *, square: bool = False) -> list[list[float]]:
    """Small ones, of any shape."""
    rows = draw(st.integers(1, 6))
    columns = rows if square else draw(st.integers(1, 6))
    row = st.lists(NUMBERS, min_size=columns, max_size=columns)
    return draw(st.lists(row, min_size=rows, max_size=rows))


def plain(listed: Any) -> Any:
    """Complex numbers of `{re, im}`, and real ones as they are."""
    return np.array(
        [one if type(one) is float else complex(one["re"], one["im"]) for one in listed]
    )


@settings(max_examples=60)
@given(matrices(), st.data())
def test_what_is_left_is_orthogonal_to_all_columns(a: Any, data: st.DataObject) -> None:
    b = data.draw(st.lists(NUMBERS, min_size=len(a), max_size=len(a)))
    found = linear.solve(a, b)
    matrix, x = np.array(a), np.array(found["x"])
    left = matrix @ x - np.array(b)
    reach = np.linalg.norm(matrix) * (
        np.linalg.norm(matrix) * np.linalg.norm(x) + np.linalg.norm(b)
    )
    assert np.linalg.norm(matrix.T @ left) <= 1e-9 * reach + 1e-9
    assert np.isclose(found["residual"], np.linalg.norm(left), rtol=1e-6, atol=1e-9 * reach + 1e-9)


def test_it_is_what_numpy_finds_for_large_ones() -> None:
    chance = np.random.default_rng(1)
    a, b = chance.normal(size=(80, 80)), chance.normal(size=(80, 2))
    found = linear.solve(a.tolist(), b.tolist())
    assert np.allclose(found["x"], np.linalg.solve(a, b))
    assert np.isclose(found["condition"], np.linalg.cond(a))
    assert found["kind"] == "unique"


@settings(max_examples=60)
@given(matrices())
def test_the_parts_make_the_matrix_again(a: Any) -> None:
    found = linear.singular_values(a, vectors=True)
    u, s, vt = np.array(found["u"]), np.array(found["values"]), np.array(found["vt"])
    reach = 1e-12 * max(found["norm"], 1.0)
    assert np.allclose(u * s @ vt, a, atol=100 * reach)
    assert np.allclose(u.T @ u, np.eye(len(s)), atol=1e-12)
    assert np.allclose(vt @ vt.T, np.eye(len(s)), atol=1e-12)
    assert (np.diff(s) <= 0).all()
    assert found["rank"] == np.linalg.matrix_rank(np.array(a))


@settings(max_examples=60)
@given(matrices(square=True))
def test_a_matrix_stretches_its_vectors_by_its_values(a: Any) -> None:
    found = linear.eigenvalues(a, vectors=True)
    matrix, values = np.array(a), plain(found["values"])
    reach = 1e-9 * (np.linalg.norm(matrix) + 1.0)
    for value, vector in zip(values, map(plain, found["vectors"]), strict=True):
        assert np.linalg.norm(matrix @ vector - value * vector) <= reach
        assert np.isclose(np.linalg.norm(vector), 1.0)
    assert abs(values.sum() - found["trace"]) <= reach
    assert (np.diff(np.abs(values)) <= reach).all() or found["symmetric"]


@settings(max_examples=40)
@given(matrices(square=True))
def test_a_symmetric_matrix_is_known_as_one(a: Any) -> None:
    even = (np.array(a) + np.array(a).T).tolist()
    found = linear.eigenvalues(even, vectors=False)
    assert found["symmetric"]
    assert found["all_real"]
    assert np.allclose(plain(found["values"]).real, np.linalg.eigvalsh(even)[::-1], atol=1e-6)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), None])
def test_what_is_no_finite_number_is_refused(wrong: Any) -> None:
    with pytest.raises(ToolError, match="finite"):
        linear.solve([[1.0, wrong]], [1.0])
    with pytest.raises(ToolError, match="finite"):
        linear.solve([[1.0]], [wrong])
    with pytest.raises(ToolError, match="finite"):
        linear.singular_values([[wrong]], vectors=True)
