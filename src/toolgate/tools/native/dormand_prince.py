"""The Runge-Kutta method of Dormand and Prince, of order 5(4), as one compiled loop.

Steps adapt to the error that is wanted; between them there is a polynomial of order 4, which gives
the values at the times that were asked for and where an event happens.

`values` holds the time, the state, and constants. All is written with plain loops, over arrays that
are made outside: compiling it then takes a fraction of the time.

Needs numba, so that only workers import this.
"""

# ruff: noqa: PLR0913, PLR0917
# A loop that is compiled takes its arrays one by one; parts of it would cost more than they do.

from typing import Any

import numba
import numpy as np
from numba import boolean, float64, int64

from toolgate.tools.native.functions import KEPT, System

DONE, STOPPED, TOO_MANY, STIFF, NO_VALUE, FULL = range(6)
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
_ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
_BETWEEN = np.array(
    [
        -12715105075 / 11282082432,
        0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    ]
)
# Where a step is looked at for events, besides its ends.
_PARTS = 4
_HALVINGS = 60
# A step that is bound by stability so often in a row, and not by the error, is of a stiff system.
_BOUND = 3.25
_IN_A_ROW = 15
_FREE = 6

_compiled = numba.njit(error_model="numpy")


@_compiled
def _take(rhs: Any, values: Any, trial: Any, k: Any, size: Any, step: Any) -> Any:
    """The seven stages; `trial` ends as the new state. Says how far stability is from its bound."""
    above, below = 0.0, 0.0
    for stage in range(6):
        for i in range(size):
            total = 0.0
            for j in range(stage + 1):
                total += _STAGES[stage, j] * k[j, i]
            new = values[1 + i] + step * total
            if stage == 5:
                below += (new - trial[1 + i]) ** 2
            trial[1 + i] = new
        trial[0] = values[0] + _TIMES[stage] * step
        rhs(trial, k[stage + 1])
    for i in range(size):
        above += (k[6, i] - k[5, i]) ** 2
    return abs(step) * np.sqrt(above / below) if below > 0.0 else 0.0


@_compiled
def _error(values: Any, trial: Any, k: Any, size: Any, step: Any, rtol: Any, atol: Any) -> Any:
    total = 0.0
    for i in range(size):
        found = 0.0
        for j in range(7):
            found += _ERROR[j] * k[j, i]
        scale = atol + rtol * max(abs(values[1 + i]), abs(trial[1 + i]))
        total += (step * found / scale) ** 2
    return np.sqrt(total / size)


@_compiled
def _between(values: Any, trial: Any, k: Any, size: Any, step: Any, share: Any, into: Any) -> Any:
    """The state at a share of the step."""
    into[0] = values[0] + share * step
    rest = 1.0 - share
    for i in range(size):
        change = trial[1 + i] - values[1 + i]
        bend = step * k[0, i] - change
        fifth = 0.0
        for j in range(7):
            fifth += _BETWEEN[j] * k[j, i]
        inner = change - step * k[6, i] - bend + rest * step * fifth
        into[1 + i] = values[1 + i] + share * (change + rest * (bend + share * inner))


@_compiled
def _locate(
    watch: Any,
    values: Any,
    trial: Any,
    k: Any,
    size: Any,
    step: Any,
    sought: Any,
    low: Any,
    high: Any,
    sign: Any,
    into: Any,
    now: Any,
) -> Any:
    """The share of the step at which an event happens, by halving."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        _between(values, trial, k, size, step, middle, into)
        watch(into, now)
        if sign * now[sought] >= 0.0:
            high = middle
        else:
            low = middle
    return high


@_compiled
def _next_event(
    watch: Any,
    values: Any,
    trial: Any,
    k: Any,
    size: Any,
    step: Any,
    directions: Any,
    room: Any,
    into: Any,
) -> Any:
    """The first event after the share that `room` ends with: its number and share, or none.

    `room` has rows for what is watched: before, after, now, and which ones happened already.
    """
    many = len(directions)
    first, share = -1, 2.0
    part = int(room[4, 0])
    while part < _PARTS and first < 0:
        _between(values, trial, k, size, step, (part + 1) / _PARTS, into)
        watch(into, room[1])
        for i in range(many):
            sign = 1.0 if room[0, i] < 0.0 else -1.0
            if room[0, i] == 0.0 or room[3, i] > part or sign * room[1, i] < 0.0:
                continue
            if directions[i] * sign < 0.0 or np.isnan(room[1, i]) or np.isnan(room[0, i]):
                continue
            found = _locate(
                watch,
                values,
                trial,
                k,
                size,
                step,
                i,
                part / _PARTS,
                (part + 1) / _PARTS,
                sign,
                into,
                room[2],
            )
            if found < share:
                first, share = i, found
        if first < 0:
            part += 1
            for i in range(many):
                room[0, i] = room[1, i]
    room[4, 0] = part
    if first >= 0:
        room[3, first] = part + 1
    return first, share


@_compiled
def _happen(
    watch: Any,
    values: Any,
    trial: Any,
    k: Any,
    size: Any,
    step: Any,
    directions: Any,
    stops: Any,
    found: Any,
    told: Any,
    room: Any,
    into: Any,
) -> Any:
    """Write the events of a step, in order; gives the share of it that counts, and how it ended."""
    watch(values, room[0])
    room[4, 0] = 0.0
    for i in range(len(directions)):
        room[3, i] = 0.0
    while True:
        which, share = _next_event(watch, values, trial, k, size, step, directions, room, into)
        if which < 0:
            return 1.0, TOO_MANY
        count = int(told[4])
        if count == len(found):
            return share, FULL
        _between(values, trial, k, size, step, share, into)
        found[count, 0] = which
        for i in range(size + 1):
            found[count, 1 + i] = into[i]
        told[4] += 1
        if stops[which] > 0.0:
            return share, STOPPED


@_compiled
def _write(
    times: Any,
    values: Any,
    trial: Any,
    k: Any,
    size: Any,
    step: Any,
    reached: Any,
    forward: Any,
    written: Any,
    out: Any,
    into: Any,
) -> Any:
    """The states at the times up to what is reached; gives how many there are now."""
    while written < len(times) and forward * (times[written] - reached) <= 0.0:
        _between(values, trial, k, size, step, min((times[written] - values[0]) / step, 1.0), into)
        for i in range(size):
            out[written, i] = into[1 + i]
        written += 1
    return written


_VECTOR, _TABLE = float64[::1], float64[:, ::1]
_SIGNATURE = float64(
    System,
    System,
    _VECTOR,
    int64,
    float64,
    float64,
    float64,
    _VECTOR,
    _VECTOR,
    _VECTOR,
    _TABLE,
    _TABLE,
    float64,
    int64,
    boolean,
    _TABLE,
    _VECTOR,
    _VECTOR,
    _TABLE,
    _VECTOR,
)


@numba.njit(_SIGNATURE, error_model="numpy", cache=KEPT)
def integrate(
    rhs: Any,
    watch: Any,
    values: Any,
    size: Any,
    end: Any,
    rtol: Any,
    atol: Any,
    times: Any,
    directions: Any,
    stops: Any,
    out: Any,
    found: Any,
    step: Any,
    most: Any,
    is_wary: Any,
    k: Any,
    trial: Any,
    into: Any,
    room: Any,
    told: Any,
) -> Any:
    """Until the end, an event that stops it, or trouble: `values` is then the last good state.

    `k` starts with the derivative, and `step` is the first one to try. Gives how it ended; `told`
    has the numbers of steps, rejected steps, calls, times and events.
    """
    ended, share, bound, free = TOO_MANY, 1.0, 0, 0
    forward = 1.0 if step >= 0.0 else -1.0
    written = int(told[3])
    while told[0] + told[1] < most:
        left = end - values[0]
        is_last = abs(step) >= abs(left) * (1.0 - 1e-12)
        if is_last:
            step = left
        if abs(step) <= 4e-16 * abs(values[0]) or abs(step) < 1e-300:
            ended = DONE if is_last else NO_VALUE
            break
        stability = _take(rhs, values, trial, k, size, step)
        told[2] += 6
        error = _error(values, trial, k, size, step, rtol, atol)
        if not error <= 1.0:
            told[1] += 1
            step *= max(0.1, 0.9 * error**-0.2) if np.isfinite(error) else 0.1
            continue
        told[0] += 1
        share, is_over = 1.0, False
        if len(directions):
            share, ended = _happen(
                watch, values, trial, k, size, step, directions, stops, found, told, room, into
            )
            is_over = ended in (STOPPED, FULL)
        reached = values[0] + share * step if is_over else (end if is_last else trial[0])
        written = _write(times, values, trial, k, size, step, reached, forward, written, out, into)
        if is_over:
            _between(values, trial, k, size, step, share, into)
        for i in range(size + 1):
            values[i] = into[i] if is_over else trial[i]
        if is_over:
            break
        for i in range(size):
            k[0, i] = k[6, i]
        if is_last:
            values[0], ended = end, DONE
            break
        bound, free = (bound + 1, 0) if stability > _BOUND else (bound, free + 1)
        bound = 0 if free >= _FREE else bound
        if is_wary and bound >= _IN_A_ROW:
            ended = STIFF
            break
        step *= min(10.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
    told[3] = written
    return ended
