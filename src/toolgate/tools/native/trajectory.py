"""Ordinary differential equations, by steps that adapt; by an implicit method where stiff.

Needs numpy and numba, so that only workers import this.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolgate.tools.native import dormand_prince
from toolgate.tools.native.functions import system
from toolgate.tools.native.stiff import implicitly

_MOST_EVENTS = 1_000
_DIRECTIONS = {"any": 0, "rising": 1, "falling": -1}


class Problem(NamedTuple):
    """What is solved, as functions of one array: the time, the state, the constants."""

    rhs: Any
    watch: Any
    values: Any
    size: int
    end: float
    times: Any
    rtol: float
    atol: float
    directions: Any
    stops: Any
    most: int


class Solved(NamedTuple):
    """How far it came: states at the first of the times, and events with their time and state."""

    ended: int
    states: Any
    happened: Any
    values: Any
    steps: int
    rejected: int
    calls: int


def solve(  # noqa: PLR0913  as its tool
    *,
    equations: Mapping[str, str],
    initial: Mapping[str, float],
    constants: Mapping[str, float],
    time: str,
    start: float,
    times: Sequence[float],
    end: float,
    events: Sequence[Mapping[str, Any]],
    method: str,
    rtol: float,
    atol: float,
    max_steps: int,
) -> dict[str, Any]:
    """From the start to the end, with the states at the times that are asked for."""
    names = (time, *equations, *constants)
    watched = [one["expression"] for one in events]
    problem = Problem(
        rhs=system(tuple(equations.values()), names),
        watch=system(watched or ("0",), names),
        values=np.array(
            [start, *(initial[name] for name in equations), *constants.values()], dtype=float
        ),
        size=len(equations),
        end=end,
        times=np.array(times, dtype=float),
        rtol=rtol,
        atol=atol,
        directions=np.array([_DIRECTIONS[one["direction"]] for one in events], dtype=float),
        stops=np.array([one["stop"] for one in events], dtype=float),
        most=max_steps,
    )
    notes: list[str] = []
    if method == "stiff":
        solved = Solved(*implicitly(problem, _MOST_EVENTS))
    else:
        solved = _explicitly(problem, is_wary=method == "auto")
        if solved.ended == dormand_prince.STIFF:
            notes.append(
                "The system is stiff: an implicit method (Radau) solved it, since RK45 would take "
                "far too many steps."
            )
            method, solved = "stiff", Solved(*implicitly(problem, _MOST_EVENTS))
    notes += _notes(solved, max_steps)
    return {
        **_answer(problem, solved, tuple(equations)),
        "method": "Radau" if method == "stiff" else "RK45",
        "notes": notes,
    }


def _explicitly(problem: Problem, *, is_wary: bool) -> Solved:
    size, many = problem.size, len(problem.directions)
    out, found = np.empty((len(problem.times), size)), np.empty((_MOST_EVENTS, size + 2))
    values, k = problem.values.copy(), np.zeros((7, size))
    problem.rhs(values, k[0])
    at_once = int((problem.times == values[0]).sum())
    out[:at_once] = values[1 : 1 + size]
    if not np.isfinite(k[0]).all():
        none = np.empty((0, size + 2))
        return Solved(dormand_prince.NO_VALUE, out[:at_once], none, values, 0, 0, 1)
    told = np.array([0, 0, 2, at_once, 0], dtype=float)
    ended = dormand_prince.integrate(
        problem.rhs,
        problem.watch,
        values,
        size,
        problem.end,
        problem.rtol,
        problem.atol,
        problem.times,
        problem.directions,
        problem.stops,
        out,
        found,
        _first_step(problem, k[0]),
        problem.most,
        is_wary,
        k,
        values.copy(),
        values.copy(),
        np.zeros((5, max(many, 1))),
        told,
    )
    steps, rejected, calls, written, count = (int(one) for one in told)
    return Solved(int(ended), out[:written], found[:count], values, steps, rejected, calls)


def _first_step(problem: Problem, slope: Any) -> float:
    """A careful one, by how fast the slope changes."""
    state, reach = problem.values[1 : 1 + problem.size], problem.end - problem.values[0]
    scale = problem.atol + problem.rtol * np.abs(state)
    with np.errstate(all="ignore"):
        size, speed = _rms(state / scale), _rms(slope / scale)
        guess = 1e-6 if min(size, speed) < 1e-5 else 0.01 * size / speed
        guess = min(guess, abs(reach))
        ahead, changed = problem.values.copy(), np.empty(problem.size)
        ahead[0] += math.copysign(guess, reach)
        ahead[1 : 1 + problem.size] += math.copysign(guess, reach) * slope
        problem.rhs(ahead, changed)
        most = max(speed, _rms((changed - slope) / scale) / guess)
        better = max(1e-6, guess * 1e-3) if most <= 1e-15 else (0.01 / most) ** 0.2
    found = min(100 * guess, better, abs(reach))
    return math.copysign(found if 0.0 < found < math.inf else guess, reach)


def _rms(array: Any) -> float:
    return math.sqrt(float((array**2).mean()))


def _answer(problem: Problem, solved: Solved, names: Sequence[str]) -> dict[str, Any]:
    # What is not finite has no place in JSON, and what comes after it no meaning.
    good = np.isfinite(solved.states).all(axis=1)
    count = len(good) if good.all() else int(good.argmin())
    columns = solved.states[:count].T + 0.0
    return {
        "times": problem.times[:count].tolist(),
        "values": {name: columns[at].tolist() for at, name in enumerate(names)},
        "final": {
            "time": float(solved.values[0]),
            "values": _state(names, solved.values[1:]),
        },
        "complete": solved.ended == dormand_prince.DONE,
        "stopped_by_event": solved.ended == dormand_prince.STOPPED,
        "events": [
            {"event": int(one[0]), "time": float(one[1]), "values": _state(names, one[2:])}
            for one in solved.happened
        ],
        "steps": solved.steps,
        "rejected_steps": solved.rejected,
        "evaluations": solved.calls,
    }


def _state(names: Sequence[str], values: Any) -> dict[str, float]:
    return {name: float(values[at]) + 0.0 for at, name in enumerate(names)}


def _notes(solved: Solved, most: int) -> list[str]:
    reached = f"{solved.values[0]:.6g}"
    told = {
        dormand_prince.TOO_MANY: (
            f"It came to {reached} in {most} steps and ended there. Raise max_steps or the "
            'tolerances, or ask for method "stiff".'
        ),
        dormand_prince.NO_VALUE: (
            f"It cannot go on beyond {reached}: the solution grows without bound or the equations "
            "have no value there."
        ),
        dormand_prince.FULL: f"More than {_MOST_EVENTS} events happened: it ended at {reached}.",
    }
    return [told[solved.ended]] if solved.ended in told else []
