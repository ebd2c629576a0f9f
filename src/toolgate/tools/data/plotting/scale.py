"""Round numbers along an axis, and how they are written."""

import math
from collections.abc import Sequence
from typing import NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_FEW = 1e-9


class Scale(NamedTuple):
    """An axis from `low` to `high`, with marks at round numbers."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    def part(self, value: float) -> float:
        """Where a value stands: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)


def scale(low: float, high: float, most: int, *, is_loose: bool) -> Scale:
    """At most so many marks. A loose axis begins and ends with one."""
    low, high = _apart(low, high)
    # One on each side of zero, and zero itself.
    most = max(most, 3)
    step = _step((high - low) / max(most - 1, 1))
    if is_loose:
        first, last = math.floor(low / step + _FEW), math.ceil(high / step - _FEW)
        while last - first + 1 > most:
            step = _step(step * 1.01)
            first, last = math.floor(low / step + _FEW), math.ceil(high / step - _FEW)
        low, high = first * step, last * step
    else:
        first, last = math.ceil(low / step - _FEW), math.floor(high / step + _FEW)
    ticks = tuple(number * step for number in range(first, last + 1))
    return Scale(low, high, ticks, labels(ticks, step))


def labels(values: Sequence[float], step: float) -> tuple[str, ...]:
    """All with as many decimals as tell them apart."""
    largest = max((abs(one) for one in values), default=0.0)
    if largest and (largest >= 1e6 or step < 1e-4):
        places = max(0, math.ceil(math.log10(largest / step)) if step else 0)
        return tuple(_power(one, min(places, 12)) for one in values)
    places = max(0, -math.floor(math.log10(step) + _FEW))
    # 2.5 has a decimal more than its power of ten.
    if round(step, places) != step and not math.isclose(round(step, places), step):
        places += 1
    return tuple(f"{_zero(one, step):.{places}f}" for one in values)


def short(value: float) -> str:
    """One number, in few characters."""
    return "0" if value == 0 else f"{value:.4g}"


def _apart(low: float, high: float) -> tuple[float, float]:
    """Two numbers that differ."""
    if high - low > max(abs(low), abs(high)) * 1e-12 and high - low > 1e-300:
        return low, high
    pad = abs(low) * 0.1 or 1.0
    return low - pad, high + pad


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(one * power for one in _STEPS if one * power >= least * (1 - _FEW))


def _zero(value: float, step: float) -> float:
    return 0.0 if abs(value) < step / 1e6 else value


def _power(value: float, places: int) -> str:
    if value == 0:
        return "0"
    digits, power = f"{value:.{places}e}".split("e")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return f"{digits}e{int(power)}"
