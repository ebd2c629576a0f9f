"""The algorithms of the native tools in plain Python: what compiled code is held against.

The same methods with the same coefficients, written as one would without numpy.
"""

import math
import random
from collections.abc import Callable, Sequence

Vector = list[float]
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def dormand_prince(
    rhs: Callable[[Vector], Vector], state: Vector, end: float, rtol: float, atol: float
) -> Vector:
    """Of a system that does not depend on the time."""
    time, step, size = 0.0, 1e-3, len(state)
    first = rhs(state)
    while time < end:
        step = min(step, end - time)
        slopes, new = [first], state
        for row in _STAGES:
            new = [
                state[i] + step * sum(one * k[i] for one, k in zip(row, slopes, strict=False))
                for i in range(size)
            ]
            slopes.append(rhs(new))
        error = 0.0
        for i in range(size):
            off = step * sum(one * k[i] for one, k in zip(_ERROR, slopes, strict=True))
            error += (off / (atol + rtol * max(abs(state[i]), abs(new[i])))) ** 2
        error = math.sqrt(error / size)
        if error <= 1.0:
            time, state, first = time + step, new, slopes[-1]
        step *= min(10.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
    return state


def nelder_mead(
    function: Callable[[Vector], float], start: Vector, tolerance: float, most: int
) -> Vector:
    """With the coefficients that fit the number of dimensions."""
    size = len(start)
    corners = [start[:] for _ in range(size + 1)]
    for i in range(size):
        corners[i + 1][i] += 0.1 * abs(start[i]) + 0.25
    heights = [function(one) for one in corners]
    for _ in range(most):
        order = sorted(range(size + 1), key=heights.__getitem__)
        corners, heights = [corners[i] for i in order], [heights[i] for i in order]
        low, worst = corners[0], corners[-1]
        if all(abs(h - heights[0]) <= tolerance * (1 + abs(heights[0])) for h in heights) and all(
            abs(c[j] - low[j]) <= tolerance * (1 + abs(low[j]))
            for c in corners
            for j in range(size)
        ):
            break
        middle = [sum(one[j] for one in corners[:-1]) / size for j in range(size)]
        point = [2 * middle[j] - worst[j] for j in range(size)]
        height = function(point)
        if heights[0] <= height < heights[-2]:
            corners[-1], heights[-1] = point, height
            continue
        factor = 1 + 2 / size
        if height >= heights[0]:
            factor = (0.75 - 0.5 / size) * (1 if height < heights[-1] else -1)
        other = [middle[j] + factor * (middle[j] - worst[j]) for j in range(size)]
        second = function(other)
        if second < min(height, heights[-1]):
            corners[-1], heights[-1] = other, second
        elif height < heights[0]:
            corners[-1], heights[-1] = point, height
        else:
            shrink = 1 - 1 / size
            corners[1:] = [
                [low[j] + shrink * (one[j] - low[j]) for j in range(size)] for one in corners[1:]
            ]
            heights[1:] = [function(one) for one in corners[1:]]
    return corners[0]


def monte_carlo(sample: Callable[[random.Random], float], samples: int) -> Vector:
    """Mean, standard deviation, percentiles and a histogram."""
    chance = random.Random(0)  # noqa: S311  a simulation
    values = sorted(sample(chance) for _ in range(samples))
    mean = math.fsum(values) / samples
    std = math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (samples - 1))
    counts, width = [0] * 20, (values[-1] - values[0]) / 20
    for one in values:
        counts[min(int((one - values[0]) / width), 19)] += 1
    return [mean, std, *(values[samples * one // 100] for one in (5, 25, 50, 75, 95))]


def metropolis(
    density: Callable[[Vector], float], start: Vector, steps: int, seed: int
) -> list[Vector]:
    """One chain, with proposals of one width."""
    chance, width = random.Random(seed), 1.0  # noqa: S311  a simulation
    place, height = start, density(start)
    kept: list[Vector] = []
    for _ in range(steps):
        new = [one + width * chance.gauss(0.0, 1.0) for one in place]
        found = density(new)
        if found - height >= math.log(1.0 - chance.random()):
            place, height = new, found
        kept.append(place)
    return kept


def _kernel(one: Sequence[float], two: Sequence[float], lengths: Sequence[float]) -> float:
    square = sum(((a - b) / c) ** 2 for a, b, c in zip(one, two, lengths, strict=True))
    apart = math.sqrt(5.0 * square)
    return (1.0 + apart + apart * apart / 3.0) * math.exp(-apart)


def _forward(root: list[Vector], right: Sequence[float]) -> Vector:
    found: Vector = []
    for row, one in zip(root, right, strict=True):
        found.append((one - sum(a * b for a, b in zip(row, found, strict=False))) / row[len(found)])
    return found


def _fitted(points: list[Vector], values: Vector, lengths: Vector) -> tuple[float, list[Vector]]:
    """The likelihood of lengths, and the root of their matrix."""
    root: list[Vector] = []
    for i, one in enumerate(points):
        row: Vector = []
        for j in range(i):
            known = sum(a * b for a, b in zip(row, root[j], strict=False))
            row.append((_kernel(one, points[j], lengths) - known) / root[j][j])
        row.append(math.sqrt(max(1.0 + 1e-8 - sum(a * a for a in row), 1e-12)))
        root.append(row)
    variance = sum(one * one for one in _forward(root, values)) / len(values)
    logs = sum(math.log(row[-1]) for row in root)
    return -0.5 * len(values) * math.log(max(variance, 1e-12)) - logs, root


def gaussian_process(
    points: list[Vector], values: Vector, grid: Sequence[float], candidates: int
) -> Vector:
    """The candidate of the highest expected improvement, by the likeliest of a grid of lengths."""
    size, chance = len(points[0]), random.Random(0)  # noqa: S311  a search
    tried = [[one] * size for one in grid]
    best = max(tried, key=lambda one: _fitted(points, values, one)[0])
    for at in range(size):
        near = [[*best[:at], best[at] * one, *best[at + 1 :]] for one in (0.4, 0.65, 1.0, 1.6, 2.5)]
        best = max(near, key=lambda one: _fitted(points, values, one)[0])
    root = _fitted(points, values, best)[1]
    weights, lowest = _forward(root, values), min(values)

    def gain(point: Vector) -> float:
        part = _forward(root, [_kernel(point, one, best) for one in points])
        mean = sum(a * b for a, b in zip(part, weights, strict=True))
        std = math.sqrt(max(1.0 - sum(a * a for a in part), 1e-12))
        share = (lowest - mean) / std
        normal = math.exp(-0.5 * share * share) / math.sqrt(2.0 * math.pi)
        return (lowest - mean) * 0.5 * math.erfc(-share / math.sqrt(2.0)) + std * normal

    return max(([chance.random() for _ in range(size)] for _ in range(candidates)), key=gain)
