"""A Gaussian process: what a function may be like, by the few values of it that are known.

Points lie in the unit cube; values are centred and scaled by whoever gives them. The kernel is that
of Matérn with 5/2, with a length for each dimension, which the likelihood chooses from a grid.

Needs numpy and scipy, so that only workers import this.
"""

import importlib
import math
from typing import Any, NamedTuple

import numpy as np

# They have no types of their own.
linalg: Any = importlib.import_module("scipy.linalg")
ndtr: Any = importlib.import_module("scipy.special").ndtr
LENGTHS = tuple(float(one) for one in np.geomspace(0.05, 4.0, 12))
# Neighbours of a length on the grid that are tried for each dimension by itself.
_FACTORS = (0.4, 0.65, 1.6, 2.5)
_JITTER = 1e-8
_ROOT_5 = math.sqrt(5.0)


class Process(NamedTuple):
    """One that fits: its points, their weights, the root of its matrix, lengths and variance."""

    points: Any
    weights: Any
    root: Any
    lengths: Any
    variance: float
    likelihood: float

    def predict(self, points: Any) -> tuple[Any, Any]:
        """Mean and standard deviation at other points."""
        cross = kernel(points, self.points, self.lengths)
        mean = cross @ self.weights
        part = linalg.solve_triangular(self.root, cross.T, lower=True, check_finite=False)
        left = np.maximum(1.0 - (part**2).sum(axis=0), 1e-12)
        return mean, np.sqrt(self.variance * left)


def kernel(one: Any, two: Any, lengths: Any) -> Any:
    """How alike values are at points of both."""
    first, second = one / lengths, two / lengths
    square = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2.0 * first @ second.T
    apart = _ROOT_5 * np.sqrt(np.maximum(square, 0.0))
    return (1.0 + apart + apart**2 / 3.0) * np.exp(-apart)


def fit(points: Any, values: Any, noise: float) -> Process:
    """The likeliest: first with one length for all dimensions, then each by itself."""
    size = points.shape[1]
    best = max(
        (_given(points, values, np.full(size, one), noise) for one in LENGTHS),
        key=lambda one: one.likelihood,
    )
    for at in range(size) if size > 1 else ():
        tried = [best]
        for factor in _FACTORS:
            lengths = best.lengths.copy()
            lengths[at] *= factor
            tried.append(_given(points, values, lengths, noise))
        best = max(tried, key=lambda one: one.likelihood)
    return best


def _given(points: Any, values: Any, lengths: Any, noise: float) -> Process:
    matrix = kernel(points, points, lengths)
    extra = noise**2 + _JITTER
    while True:
        matrix[np.diag_indices_from(matrix)] = 1.0 + extra
        try:
            root = linalg.cholesky(matrix, lower=True, check_finite=False)
            break
        except linalg.LinAlgError:
            extra *= 10.0
    weights = linalg.cho_solve((root, True), values, check_finite=False)
    count = len(values)
    variance = max(float(values @ weights) / count, 1e-12)
    likelihood = -0.5 * count * math.log(variance) - float(np.log(np.diag(root)).sum())
    return Process(points, weights, root, lengths, variance, likelihood)


def expected_improvement(mean: Any, std: Any, best: float) -> Any:
    """How far below the best value one can hope to come, on average."""
    gain = best - mean
    share = gain / std
    return gain * ndtr(share) + std * np.exp(-0.5 * share**2) / math.sqrt(2.0 * math.pi)
