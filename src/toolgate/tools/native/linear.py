"""Linear algebra by LAPACK: equations by QR, eigenvalues, and singular values.

Needs numpy and scipy, so that only workers import this.
"""

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolgate.errors import ToolError
from toolgate.tools.native import matrix

# It has no types of its own.
linalg: Any = importlib.import_module("scipy.linalg")
# A residual up to here, of what is added up, is rounding.
_ROUNDING = 1e-9


def solve(a: Sequence[Sequence[float]], b: Sequence[Any]) -> dict[str, Any]:
    """The solution of `A x = b`, or the nearest to one."""
    whole, sides = matrix.read("A", a), matrix.read_sides("b", b)
    if len(sides) != len(whole):
        raise ToolError(
            f"A has {len(whole)} rows and b has {len(sides)}. Give a right-hand side for each row."
        )
    left, by = matrix.scaled(whole)
    right, times = matrix.scaled(sides)
    values = linalg.svdvals(left)
    found_rank, cond = matrix.rank(values, left.shape), matrix.condition(values)
    x = _solution(left, right, found_rank)
    residual = left @ x - right
    size, most = _norm(residual), _norm(right)
    reach = float(values[0]) * _norm(x) + most
    is_consistent = size <= _ROUNDING * reach
    unknowns = whole.shape[1]
    with np.errstate(all="ignore"):
        answer = x * (times / by)
    return {
        "x": matrix.told(answer),
        "kind": _kind(found_rank, unknowns, is_consistent=is_consistent),
        "residual": matrix.told(np.array(size * times)),
        "relative_residual": size / most if most else size,
        "rank": found_rank,
        "condition": cond,
        "rows": len(whole),
        "columns": unknowns,
        "notes": _notes(left.shape, found_rank, cond, is_consistent=is_consistent),
    }


def eigenvalues(a: Sequence[Sequence[float]], *, vectors: bool) -> dict[str, Any]:
    """Of a square matrix: real ones in order where it is symmetric, else the largest first."""
    whole = matrix.read("The matrix", a)
    matrix.square("The matrix", whole)
    found, by = matrix.scaled(whole)
    if np.array_equal(found, found.T):
        return _symmetric(found, by, vectors=vectors)
    if not vectors:
        values, sides = linalg.eigvals(found), None
    else:
        values, sides = linalg.eig(found)
    order = np.lexsort((-values.imag, -values.real, -np.abs(values).round(12)))
    values = values[order]
    answer: dict[str, Any] = {
        "values": matrix.told_complex(_unscaled(values, by)),
        "symmetric": False,
        "all_real": bool((values.imag == 0).all()),
        "trace": _plain(np.trace(whole)),
        "spectral_radius": matrix.told(_unscaled(np.abs(values).max(), by)),
        "notes": [],
    }
    if sides is None:
        return answer
    sides = sides[:, order]
    cond = matrix.condition(linalg.svdvals(sides))
    if cond is None or cond > 1 / math.sqrt(np.finfo(float).eps):
        answer["notes"].append(
            "The vectors hardly differ in direction: the matrix has, or nearly has, too few of "
            "them (it is defective), and values that are close to each other are inexact."
        )
    return {**answer, "vectors": [matrix.told_complex(one) for one in sides.T]}


def singular_values(a: Sequence[Sequence[float]], *, vectors: bool) -> dict[str, Any]:
    """`A = U S V^T`, the economic one."""
    whole = matrix.read("The matrix", a)
    found, by = matrix.scaled(whole)
    left = right = None
    if vectors:
        left, values, right = linalg.svd(found, full_matrices=False)
    else:
        values = linalg.svdvals(found)
    found_rank = matrix.rank(values, found.shape)
    cond, is_singular = matrix.condition(values), found_rank < min(found.shape)
    answer: dict[str, Any] = {
        "values": matrix.told(_unscaled(values, by)),
        "rank": found_rank,
        "condition": cond,
        "norm": matrix.told(_unscaled(values[0], by)),
        "frobenius_norm": matrix.told(_unscaled(np.sqrt((values**2).sum()), by)),
        "notes": [matrix.singular(cond)] if is_singular else matrix.warning(cond),
    }
    if left is None or right is None:
        return answer
    return {**answer, "u": matrix.told(left), "vt": matrix.told(right)}


def _solution(left: Any, right: Any, rank: int) -> Any:
    if rank == left.shape[1]:
        q, r = linalg.qr(left, mode="economic")
        return linalg.solve_triangular(r, q.T @ right)
    # Many solutions: the shortest, by a QR decomposition from both sides.
    limit = max(left.shape) * np.finfo(float).eps
    return linalg.lstsq(left, right, cond=limit, lapack_driver="gelsy")[0]


def _kind(rank: int, unknowns: int, *, is_consistent: bool) -> str:
    if not is_consistent:
        return "least_squares"
    return "unique" if rank == unknowns else "minimum_norm"


def _notes(
    shape: tuple[int, ...], rank: int, cond: float | None, *, is_consistent: bool
) -> list[str]:
    notes: list[str] = []
    rows, unknowns = shape
    if not is_consistent:
        notes.append("No x solves all equations: this one has the least squares of what is left.")
    if rank < unknowns:
        notes.append(
            f"Only {rank} of {unknowns} unknowns are determined: of many solutions this is the "
            "shortest."
        )
    if rank < min(rows, unknowns):
        notes.append(matrix.singular(cond))
        return notes
    return notes + matrix.warning(cond)


def _symmetric(found: Any, by: float, *, vectors: bool) -> dict[str, Any]:
    if vectors:
        values, sides = linalg.eigh(found)
        sides = sides[:, ::-1].T
    else:
        values, sides = linalg.eigvalsh(found), None
    values = values[::-1]
    answer: dict[str, Any] = {
        "values": matrix.told_complex(_unscaled(values, by).astype(complex)),
        "symmetric": True,
        "all_real": True,
        "trace": _plain(np.trace(found) * by),
        "spectral_radius": matrix.told(_unscaled(np.abs(values).max(), by)),
        "notes": [],
    }
    if sides is None:
        return answer
    return {**answer, "vectors": [matrix.told_complex(one.astype(complex)) for one in sides]}


def _norm(array: Any) -> float:
    return float(np.sqrt((array**2).sum()))


def _unscaled(array: Any, by: float) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(array * by)


def _plain(value: Any) -> float | None:
    return float(value) + 0.0 if math.isfinite(value) else None
