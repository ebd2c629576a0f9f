"""How far back: `90m`, `24h`, `7d`, or a moment such as 2026-11-15T08:00Z."""

import re
from datetime import UTC, datetime, timedelta

from toolgate import clock

_AGO = re.compile(r"(\d{1,6})([smhd])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def is_ago(text: str) -> bool:
    """Whether it says how long ago, and not when."""
    return _AGO.match(text) is not None


def parse_since(text: str) -> int:
    """The moment in nanoseconds, or `ValueError` that says how to write it."""
    ago = _AGO.match(text)
    if ago is not None:
        seconds = timedelta(**{_UNITS[ago[2]]: int(ago[1])}).total_seconds()
        return max(round(clock.unix_ns() - seconds * 1e9), 0)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("write 90m, 24h, 7d, or a moment such as 2026-11-15T08:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # What the store can compare with.
    return min(max(round(moment.timestamp() * 1e9), 0), 2**63 - 1)
