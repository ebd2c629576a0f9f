"""Matrices of callers: read into arrays, checked, and written again.

Needs numpy, so that only workers import this.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolgate.errors import ToolError

# From here on, half of the digits of a result may be lost.
ILL = 1e8


def read(name: str, rows: Sequence[Sequence[float]]) -> Any:
    """A matrix, all rows of one length."""
    lengths = {len(row) for row in rows}
    if len(lengths) != 1:
        raise ToolError(f"The rows of {name} differ in length. Give a number for each place.")
    return _finite(name, np.array(rows, dtype=float))


def read_sides(name: str, given: Sequence[Any]) -> Any:
    """A vector, or a matrix with a column for each right-hand side."""
    if any(isinstance(one, list) for one in given):
        if not all(isinstance(one, list) for one in given):
            raise ToolError(f"{name} is a list of numbers or a list of rows, not both.")
        return read(name, given)
    return _finite(name, np.array(given, dtype=float))


def square(name: str, matrix: Any) -> None:
    """Refuse one that is not."""
    rows, columns = matrix.shape
    if rows != columns:
        raise ToolError(
            f"{name} has {rows} rows and {columns} columns; it has as many of both. "
            "For others there is matrix_svd."
        )


def scaled(matrix: Any) -> tuple[Any, float]:
    """The same with entries below 2, and what they were divided by: a power of two."""
    largest = float(np.abs(matrix).max())
    # The largest number there is has no power of two above it.
    scale = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
    return matrix / scale, scale


def condition(values: Any) -> float | None:
    """By singular values, the largest first; nothing where a matrix is singular."""
    if not values.size or values[-1] <= values[0] * np.finfo(float).tiny:
        return None
    found = float(values[0] / values[-1])
    return found if math.isfinite(found) else None


def rank(values: Any, shape: tuple[int, ...]) -> int:
    """How many singular values are more than rounding."""
    if not values.size:
        return 0
    return int((values > values[0] * max(shape) * np.finfo(float).eps).sum())


def singular(cond: float | None) -> str:
    """What a reader is told of a matrix that is singular as far as its numbers tell."""
    how = "" if cond is None else f" (condition about {cond:.2g})"
    return (
        f"The matrix is numerically singular{how}: within the 16 digits of its numbers, some of "
        "its rows follow from the others."
    )


def warning(cond: float | None) -> list[str]:
    """What a reader is told of a matrix that is nearly singular."""
    if cond is None or cond < ILL:
        return []
    lost = min(16, round(math.log10(cond)))
    text = (
        f"The matrix is ill-conditioned ({cond:.2g}): about {lost} of 16 digits may be lost. "
        "Small changes of the input change the result much."
    )
    return [text]


def told(found: Any) -> Any:
    """As lists; refused where a number is too large."""
    if not np.isfinite(found).all():
        raise ToolError("A result is too large for a number. Scale the input.")
    # There is no other zero for a reader.
    return (found + 0.0).tolist()


def told_complex(found: Any) -> list[Any]:
    """Plain numbers where all are real, else each as `{re, im}`."""
    if not found.imag.any():
        return told(found.real)
    real, imaginary = told(found.real), told(found.imag)
    return [{"re": one, "im": two} for one, two in zip(real, imaginary, strict=True)]


def _finite(name: str, array: Any) -> Any:
    if not array.size:
        raise ToolError(f"{name} is empty. Give at least one number.")
    if not np.isfinite(array).all():
        raise ToolError(f"{name} holds something that is no finite number.")
    return array
