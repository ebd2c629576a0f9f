"""Where to look next for the lowest value of a function that is costly to compute.

Needs numpy, scipy and numba, so that only workers import this.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import qmc

from toolgate.errors import ToolError
from toolgate.tools.native.functions import scalar
from toolgate.tools.native.gaussian_process import Process, expected_improvement, fit

CANDIDATES = 1_024
NEARBY = 256
_NARROWER = 3
_NOT_MORE = 1e-9


def search(  # noqa: PLR0913  as its tool
    *,
    objective: str | None,
    bounds: Mapping[str, Sequence[float]],
    constants: Mapping[str, float],
    observations: Sequence[Mapping[str, Any]],
    goal: str,
    evaluations: int,
    initial: int,
    suggestions: int,
    noise: float,
    seed: int,
) -> dict[str, Any]:
    """Compute an objective where it is worth it; and say where to look next."""
    names = tuple(bounds)
    low = np.array([bounds[name][0] for name in names], dtype=float)
    width = np.array([bounds[name][1] for name in names], dtype=float) - low
    sign = -1.0 if goal == "maximize" else 1.0
    known = _Known(len(names), noise, seed)
    for one in observations:
        place = np.array([one["point"][name] for name in names], dtype=float)
        known.add((place - low) / width, sign * one["value"])
    if objective is not None:
        function = scalar(objective, (*names, *constants))
        fixed = np.array([*constants.values()], dtype=float)
        for number in range(evaluations):
            point = known.scattered(number) if len(known) < initial else known.propose()[0]
            value = float(function(np.concatenate([low + point * width, fixed])))
            known.add(point, sign * value)
    if not known.has_value:
        raise ToolError("The objective had no value at any point. Give other bounds.")

    def named(point: Any) -> dict[str, float]:
        return {name: float(one) for name, one in zip(names, low + point * width, strict=True)}

    at = known.best
    return {
        "best": {"point": named(known.points[at]), "value": sign * known.values[at] + 0.0},
        "suggestions": [
            {
                "point": named(point),
                "mean": sign * mean + 0.0,
                "std": std,
                "expected_improvement": gain,
            }
            for point, mean, std, gain in known.several(suggestions)
        ],
        "history": [
            {"point": named(point), "value": sign * value + 0.0 if np.isfinite(value) else None}
            for point, value in zip(known.points, known.values, strict=True)
        ],
        "evaluations": 0 if objective is None else evaluations,
        "seed": seed,
        "notes": known.notes(),
    }


class _Known:
    """What is known of a function: points of the unit cube and what it is there."""

    def __init__(self, size: int, noise: float, seed: int) -> None:
        self.points: list[Any] = []
        self.values: list[float] = []
        self._noise = noise
        self._chance = np.random.default_rng([seed, 1])
        self._even = qmc.Sobol(size, rng=np.random.default_rng([seed, 2])).random(128)
        self._gain = np.inf

    def __len__(self) -> int:
        return len(self.points)

    @property
    def has_value(self) -> bool:
        """Whether it is known anywhere."""
        return bool(np.isfinite(self.values).any())

    @property
    def best(self) -> int:
        """Which one is the lowest."""
        return int(np.argmin(np.where(np.isfinite(self.values), self.values, np.inf)))

    def add(self, point: Any, value: float) -> None:
        """One more."""
        self.points.append(point)
        self.values.append(value)

    def scattered(self, number: int) -> Any:
        """Evenly all over the cube, before anything is known."""
        return self._even[number % len(self._even)]

    def propose(self) -> tuple[Any, float, float, float]:
        """The point that promises most, with what is expected there."""
        if not self.has_value:
            return self.scattered(len(self)), 0.0, 0.0, 0.0
        points, values = np.array(self.points), self._filled()
        centre, scale = values.mean(), values.std() or 1.0
        process = fit(points, (values - centre) / scale, self._noise / scale)
        lowest = (values.min() - centre) / scale
        size = points.shape[1]
        tried = np.concatenate(
            [self._chance.random((CANDIDATES, size)), self._around(points[self.best], 0.1)]
        )
        top, self._gain = self._promising(process, tried, lowest)
        for number in range(_NARROWER):
            tried = np.concatenate([top[None, :], self._around(top, 0.05 * 0.2**number)])
            top, self._gain = self._promising(process, tried, lowest)
        mean, std = process.predict(top[None, :])
        return (
            top,
            float(mean[0] * scale + centre),
            float(std[0] * scale),
            float(max(self._gain, 0.0) * scale),
        )

    @staticmethod
    def _promising(process: Process, tried: Any, lowest: float) -> tuple[Any, float]:
        gains = expected_improvement(*process.predict(tried), lowest)
        return tried[gains.argmax()], float(gains.max())

    def several(self, count: int) -> list[tuple[Any, float, float, float]]:
        """Each as if the ones before had come out as expected."""
        found: list[tuple[Any, float, float, float]] = []
        for _ in range(count):
            found.append(self.propose())
            self.add(found[-1][0], found[-1][1])
        if count:
            del self.points[-count:], self.values[-count:]
        return found

    def notes(self) -> list[str]:
        """What a reader has to know."""
        notes: list[str] = []
        missing = len(self) - int(np.isfinite(self.values).sum())
        if missing:
            notes.append(f"{missing} points had no value and were taken as the worst.")
        if self._gain < _NOT_MORE:
            notes.append("Hardly anything better is expected within the bounds.")
        return notes

    def _filled(self) -> Any:
        """What has no value is as bad as the worst."""
        values = np.array(self.values)
        good = np.isfinite(values)
        return np.where(good, values, values[good].max())

    def _around(self, point: Any, reach: float) -> Any:
        return np.clip(point + reach * self._chance.normal(size=(NEARBY, len(point))), 0.0, 1.0)
