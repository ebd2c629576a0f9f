"""What describes a sample of numbers: where it lies, how far it spreads, what is common in it.

Sums are rounded once, at their end, and deviations are scaled, so that neither many numbers nor
very large or small ones spoil the result. What has no value is nothing, and a note says why.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

_SAFE = 2**53
_MODES = 10


def describe(data: Sequence[float], percentiles: Sequence[float]) -> dict[str, Any]:
    """All of it; quantiles are interpolated between neighbours, as numpy does."""
    ordered = sorted(float(one) for one in data)
    mean = _mean(ordered)
    spread = _spread(ordered, mean)
    q1, q3 = quantile(ordered, 0.25), quantile(ordered, 0.75)
    found: dict[str, Any] = {
        "count": len(data),
        "sum": _sum(data),
        "mean": mean,
        "median": quantile(ordered, 0.5),
        **spread,
        "min": min(data),
        "max": max(data),
        "range": _finite(ordered[-1] - ordered[0]),
        "q1": q1,
        "q3": q3,
        "iqr": _finite(q3 - q1),
        "modes": _modes(data),
        "percentiles": {label(one): quantile(ordered, one / 100) for one in percentiles},
    }
    return {**found, "notes": _notes(found)}


def label(percentile: float) -> str:
    """As it is written: `95` or `99.5`."""
    return str(int(percentile)) if percentile == int(percentile) else repr(percentile)


def quantile(ordered: Sequence[float], part: float) -> float:
    """Below which a part of the numbers lies."""
    place = part * (len(ordered) - 1)
    lower = math.floor(place)
    upper = min(lower + 1, len(ordered) - 1)
    share = place - lower
    if share == 0 or ordered[lower] == ordered[upper]:
        return ordered[lower]
    # Each is weighed by itself: their difference can be too large for a float.
    return ordered[lower] * (1 - share) + ordered[upper] * share


def _sum(data: Sequence[float]) -> float | None:
    if all(isinstance(one, int) for one in data):
        whole = sum(data)
        if abs(whole) <= _SAFE:
            return whole
    try:
        return math.fsum(data)
    except OverflowError:
        return None


def _mean(ordered: Sequence[float]) -> float:
    try:
        found = math.fsum(ordered) / len(ordered)
    except OverflowError:
        found = math.fsum(one / len(ordered) for one in ordered)
    # Rounding does not carry it past what it is the middle of.
    return min(max(found, ordered[0]), ordered[-1])


def _spread(ordered: Sequence[float], mean: float) -> dict[str, float | None]:
    """The standard deviations and variances, of a sample and of a whole population."""
    count = len(ordered)
    scale = max(abs(ordered[0] - mean), abs(ordered[-1] - mean))
    if scale == 0:
        squares = 0.0
    else:
        parts = [(one - mean) / scale for one in ordered]
        # What rounding of the mean leaves over is taken away again.
        squares = math.fsum(one * one for one in parts) - math.fsum(parts) ** 2 / count
    found: dict[str, float | None] = {}
    for suffix, freedom in (("", count - 1), ("_population", count)):
        part = squares / freedom if freedom else math.nan
        found[f"std{suffix}"] = _finite(scale * math.sqrt(part))
        found[f"variance{suffix}"] = _finite(scale * scale * part)
    return found


def _modes(data: Sequence[float]) -> list[float]:
    """The most common numbers, where any is there more than once."""
    counts = Counter(data).most_common()
    most = counts[0][1]
    if most == 1:
        return []
    return sorted(number for number, count in counts if count == most)[:_MODES]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _notes(found: dict[str, Any]) -> list[str]:
    notes: list[str] = []
    if found["count"] == 1:
        notes.append("One number has no sample standard deviation: std and variance need two.")
    elif any(found[name] is None for name in ("sum", "range", "std", "variance_population")):
        notes.append("What is null is too large for a number: the data is that far apart.")
    return notes
