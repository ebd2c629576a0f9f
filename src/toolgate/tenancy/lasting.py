"""How long a key lasts, in words: `30d`, `12h`, or a moment such as 2027-01-31T08:00Z."""

import re
from datetime import UTC, datetime, timedelta

from toolgate import clock
from toolgate.errors import InvalidRequest

_FOR = re.compile(r"([0-9]{1,6})([smhdw])\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SECOND = 1_000_000_000
# Longer than anybody plans, and small enough for every store.
_MOST_NS = 100 * 366 * 86_400 * _SECOND


def span(text: str, what: str) -> int:
    """A time such as `90m`, in nanoseconds; `0` is none."""
    found = _FOR.match(text) if text != "0" else None
    if text != "0" and found is None:
        raise InvalidRequest(
            f"{what} {text[:40]!r} is no time: write 0, or 30s, 90m, 24h, 7d, 4w. "
            "Nothing was changed."
        )
    if found is None:
        return 0
    seconds = timedelta(**{_UNITS[found[2]]: int(found[1])}) // timedelta(seconds=1)
    return min(seconds * _SECOND, _MOST_NS)


def end(text: str) -> int:
    """The moment that `text` names, or that is so far from now; 0 for an empty one: no end."""
    if not text:
        return 0
    now_ns = clock.unix_ns()
    if _FOR.match(text):
        return now_ns + span(text, "expires")
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        at_ns = clock.unix_of(moment)
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"'expires' {text[:40]!r} is no time: write 24h, 30d, or a moment such as "
            "2027-01-31T08:00Z. Nothing was changed."
        ) from None
    if at_ns <= now_ns:
        raise InvalidRequest(
            f"'expires' {text[:40]!r} is in the past. Nothing was changed: say a moment to come."
        )
    return min(at_ns, now_ns + _MOST_NS)


def shown(at_ns: int) -> str | None:
    """A moment as it is read in; nothing where there is none."""
    if not at_ns:
        return None
    return clock.moment_of(at_ns).isoformat(timespec="seconds").replace("+00:00", "Z")
