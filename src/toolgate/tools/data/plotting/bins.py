"""How often numbers fall into equal ranges."""

import math
from collections.abc import Sequence

import msgspec

from toolgate.tools.data.plotting.scale import labels
from toolgate.tools.data.plotting.series import label

_MOST = 50
_AUTO = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Bin(msgspec.Struct, frozen=True):
    """From `low` up to `high`; the last one takes its high end too."""

    low: float
    high: float
    count: int


def bins_of(values: Sequence[float], count: int | None, low: float, high: float) -> list[Bin]:
    """So many, or as many round ones as show the shape."""
    if high <= low:
        half = abs(low) * 0.05 or 0.5
        low, high = low - half, high + half
        count = 1
    if count is None:
        low, step, count = _round(values, low, high)
    else:
        step = (high - low) / count
    counts = [0] * count
    for one in values:
        at = math.floor((one - low) / step + 1e-9)
        if 0 <= at <= count and one <= high + step:
            counts[min(at, count - 1)] += 1
    return [Bin(low + at * step, low + (at + 1) * step, found) for at, found in enumerate(counts)]


def text_of(bins: Sequence[Bin], width: int, title: str, *, is_whole: bool) -> str:
    """One line for each, with a bar as long as its count; whole numbers can have one each."""
    step = bins[0].high - bins[0].low
    ends = [one.low for one in bins] + [bins[-1].high]
    edges = labels(ends, _exactly(ends, _told(step)))
    edge = max(map(len, edges))
    most = max(one.count for one in bins) or 1
    is_single = is_whole and step == 1.0
    room = edge if is_single else 2 * edge + 3
    lines = [label(title).center(room + 2 + width).rstrip()] if title else []
    for number, one in enumerate(bins):
        name = f"{edges[number]:>{edge}}"
        if not is_single:
            name += f" - {edges[number + 1]:>{edge}}"
        told = f"{one.count:,}" if one.count else ""
        lines.append(f"{name} │{_bar(one.count / most, width)} {told}".rstrip())
    return "\n".join(lines)


def _bar(part: float, width: int) -> str:
    eighths = round(part * width * 8)
    if part > 0 and eighths == 0:
        eighths = 1
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _exactly(ends: Sequence[float], step: float) -> float:
    """Finer where ranges begin between round numbers: 0.95, and not 0.9."""
    for one in (step, step / 10, step / 100):
        if all(math.isclose(end / one, round(end / one), abs_tol=1e-6) for end in ends):
            return one
    return step


def _told(step: float) -> float:
    """As exactly as edges are to be told: two digits of a step that is not round."""
    power = 10.0 ** math.floor(math.log10(step))
    if any(math.isclose(step, one * power, rel_tol=1e-9) for one in _STEPS):
        return step
    return power / 10


def _round(values: Sequence[float], low: float, high: float) -> tuple[float, float, int]:
    """Edges at round numbers, by the spread of the middle half, within reason."""
    ordered = sorted(values)
    size = len(ordered)
    spread = ordered[(3 * size) // 4 if size > 1 else 0] - ordered[size // 4]
    least = (high - low) / _AUTO
    wanted = 2 * spread / size ** (1 / 3) if spread else (high - low) / (math.log2(size) + 1)
    wanted = max(min(wanted, (high - low) / 5), least)
    is_whole = all(one == int(one) for one in ordered)
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(one * power for one in _STEPS if one * power >= wanted * (1 - 1e-9))
    if is_whole:
        step = max(1.0, float(math.ceil(step)))
    first = math.floor(low / step + 1e-9)
    last = math.floor(high / step + 1e-9) + 1
    if not is_whole and math.isclose(high, (last - 1) * step, rel_tol=1e-12):
        last -= 1
    return first * step, step, min(max(last - first, 1), _MOST)
