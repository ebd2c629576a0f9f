"""Decompositions of matrices in plain Python, as textbooks have them: what LAPACK is held against.

Householder reflections bring a matrix into a simple form; shifted QL steps find the values of it.
"""

import math

Matrix = list[list[float]]


def solve(a: Matrix, b: list[float]) -> list[float]:
    """By QR decomposition, on copies."""
    rows, right = [row[:] for row in a], b[:]
    size = len(rows)
    for k in range(size):
        v, beta = _reflection([rows[i][k] for i in range(k, size)])
        for j in range(k, size):
            total = beta * sum(v[i - k] * rows[i][j] for i in range(k, size))
            for i in range(k, size):
                rows[i][j] -= total * v[i - k]
        total = beta * sum(v[i - k] * right[i] for i in range(k, size))
        for i in range(k, size):
            right[i] -= total * v[i - k]
    x = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][j] * x[j] for j in range(i + 1, size))
        x[i] = (right[i] - known) / rows[i][i]
    return x


def eigenvalues(a: Matrix) -> list[float]:
    """Of a symmetric matrix: tridiagonal first."""
    rows = [row[:] for row in a]
    size = len(rows)
    for k in range(size - 2):
        v, beta = _reflection([rows[i][k] for i in range(k + 1, size)])
        _from_left(rows, v, beta, k + 1, k)
        _from_right(rows, v, beta, k + 1, k)
    diagonal = [rows[i][i] for i in range(size)]
    beside = [rows[i + 1][i] for i in range(size - 1)]
    return sorted(_values(diagonal, beside), reverse=True)


def singular_values(a: Matrix) -> list[float]:
    """Bidiagonal first; its square is tridiagonal."""
    rows = [row[:] for row in a]
    size = len(rows)
    for k in range(size):
        v, beta = _reflection([rows[i][k] for i in range(k, size)])
        _from_left(rows, v, beta, k, k)
        if k < size - 2:
            v, beta = _reflection(rows[k][k + 1 :])
            _from_right(rows, v, beta, k + 1, k)
    d = [rows[i][i] for i in range(size)]
    e = [rows[i][i + 1] for i in range(size - 1)]
    diagonal = [d[i] ** 2 + (e[i - 1] ** 2 if i else 0.0) for i in range(size)]
    beside = [d[i] * e[i] for i in range(size - 1)]
    found = _values(diagonal, beside)
    return sorted((math.sqrt(max(one, 0.0)) for one in found), reverse=True)


def _reflection(column: list[float]) -> tuple[list[float], float]:
    """The vector and factor of the reflection that leaves nothing but the first element."""
    v = column[:]
    v[0] += math.copysign(math.sqrt(sum(one * one for one in column)), column[0])
    square = sum(one * one for one in v)
    return v, 2.0 / square if square else 0.0


def _from_left(rows: Matrix, v: list[float], beta: float, first: int, start: int) -> None:
    size = len(rows)
    for j in range(start, size):
        total = beta * sum(v[i - first] * rows[i][j] for i in range(first, size))
        for i in range(first, size):
            rows[i][j] -= total * v[i - first]


def _from_right(rows: Matrix, v: list[float], beta: float, first: int, start: int) -> None:
    size = len(rows)
    for row in rows[start:]:
        total = beta * sum(v[j - first] * row[j] for j in range(first, size))
        for j in range(first, size):
            row[j] -= total * v[j - first]


def _values(diagonal: list[float], beside: list[float]) -> list[float]:
    """Of a symmetric tridiagonal matrix, by implicit QL steps with shifts."""
    d, e = diagonal[:], [*beside, 0.0]
    size = len(d)
    for low in range(size):
        while True:
            end = low
            while end < size - 1 and abs(e[end]) > 1e-15 * (abs(d[end]) + abs(d[end + 1])):
                end += 1
            if end == low:
                break
            g = (d[low + 1] - d[low]) / (2.0 * e[low])
            g = d[end] - d[low] + e[low] / (g + math.copysign(math.hypot(g, 1.0), g))
            s, c, p = 1.0, 1.0, 0.0
            for i in reversed(range(low, end)):
                f, b = s * e[i], c * e[i]
                r = math.hypot(f, g)
                e[i + 1] = r
                s, c = (f / r, g / r) if r else (0.0, 1.0)
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
            d[low] -= p
            e[low], e[end] = g, 0.0
    return d
