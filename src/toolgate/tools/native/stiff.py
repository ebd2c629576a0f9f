"""Stiff systems, by the implicit method Radau of SciPy: its steps are not bound by stability.

Needs numpy and scipy, so that only workers import this.
"""

import importlib
import warnings
from typing import Any

import numpy as np

from toolgate.tools.native import dormand_prince

# It has no types of its own.
solve_ivp: Any = importlib.import_module("scipy.integrate").solve_ivp
_MOST_CALLS = 2_000_000


class _TooMany(Exception):
    """It was computed more often than it may be."""


def implicitly(problem: Any, most_events: int) -> tuple[Any, ...]:
    """How it ended, states, events, the last state, and steps, rejected steps and calls."""
    counted = 0
    last = problem.values.copy()

    def rhs(time: float, state: Any) -> Any:
        nonlocal counted
        counted += 1
        if counted > _MOST_CALLS:
            raise _TooMany
        into = np.empty(problem.size)
        problem.rhs(_packed(problem, time, state), into)
        return into

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found: Any = solve_ivp(
                rhs,
                (float(problem.values[0]), problem.end),
                problem.values[1 : 1 + problem.size],
                method="Radau",
                t_eval=None,
                dense_output=True,
                events=[_event(problem, at) for at in range(len(problem.directions))] or None,
                rtol=max(problem.rtol, 1e-12),
                atol=problem.atol,
            )
    except _TooMany:
        return dormand_prince.TOO_MANY, _none(problem), _none(problem, 2), last, 0, 0, counted
    except ValueError:
        # It refuses a matrix with values that are not finite.
        return dormand_prince.NO_VALUE, _none(problem), _none(problem, 2), last, 0, 0, counted
    last[0], last[1 : 1 + problem.size] = found.t[-1], found.y[:, -1]
    forward = 1.0 if problem.end >= problem.values[0] else -1.0
    times = problem.times[forward * (problem.times - found.t[-1]) <= 0.0]
    states = np.array(found.sol(times)).T if len(times) else _none(problem)
    happened = _happened(found, problem.size)[:most_events]
    ended = {0: dormand_prince.DONE, 1: dormand_prince.STOPPED}.get(
        found.status, dormand_prince.NO_VALUE
    )
    return ended, states, happened, last, len(found.t) - 1, 0, counted


def _packed(problem: Any, time: float, state: Any) -> Any:
    values = problem.values.copy()
    values[0], values[1 : 1 + problem.size] = time, state
    return values


def _event(problem: Any, at: int) -> Any:
    def event(time: float, state: Any) -> float:
        into = np.empty(len(problem.directions))
        problem.watch(_packed(problem, time, state), into)
        return float(into[at])

    event.terminal = bool(problem.stops[at])  # pyright: ignore[reportFunctionMemberAccess]  SciPy's way
    event.direction = float(problem.directions[at])  # pyright: ignore[reportFunctionMemberAccess]
    return event


def _happened(found: Any, size: int) -> Any:
    pairs: Any = zip(found.t_events or (), found.y_events or (), strict=True)
    rows: list[list[Any]] = [
        [at, time, *state]
        for at, (times, states) in enumerate(pairs)
        for time, state in zip(times, states, strict=True)
    ]
    is_forward = found.t[-1] >= found.t[0]
    rows.sort(key=lambda row: row[1] if is_forward else -row[1])
    return np.array(rows) if rows else np.empty((0, size + 2))


def _none(problem: Any, more: int = 0) -> Any:
    return np.empty((0, problem.size + more))
