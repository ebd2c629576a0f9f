"""Cron's five fields: minute, hour, day of the month, month, day of the week; in UTC."""

from datetime import datetime, timedelta

import msgspec

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# A 29th of February can be eight years away.
_MOST_DAYS = 366 * 9
_LONGEST_FIELD = 200


class Cron(msgspec.Struct, frozen=True):
    """The values that each field lets through."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    # Where both kinds of days are given, either of them is enough.
    either: bool

    def after(self, moment: datetime) -> datetime | None:
        """The next one behind a moment; none where no such day comes."""
        at = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        for _ in range(_MOST_DAYS):
            if self._is_day(at):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        if (hour, minute) >= (at.hour, at.minute):
                            return at.replace(hour=hour, minute=minute)
            at = at.replace(hour=0, minute=0) + timedelta(days=1)
        return None

    def _is_day(self, at: datetime) -> bool:
        if at.month not in self.months:
            return False
        in_month, in_week = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either else in_month and in_week


def read_cron(text: str) -> Cron:
    """Five fields, or one of the names; `ValueError` says what is wrong."""
    parts = _NAMED.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"a cron line has five fields, and this has {len(parts)}")
    fields = [_field(part, *about) for part, about in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = fields
    return Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        either=not parts[2].startswith("*") and not parts[4].startswith("*"),
    )


def _field(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> frozenset[int]:
    if len(text) > _LONGEST_FIELD:
        raise ValueError(f"the {name} is too long")
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        every = _number(step, name, ()) if slash else 1
        first, dash, last = span.partition("-")
        if span == "*":
            begin, end = low, high
        else:
            begin = _number(first, name, words, low)
            end = _number(last, name, words, low) if dash else high if slash else begin
        if not low <= begin <= end <= high or every < 1:
            raise ValueError(f"the {name} {part[:20]!r} is not within {low} to {high}")
        found.update(range(begin, end + 1, every))
    return frozenset(found)


def _number(text: str, name: str, words: tuple[str, ...], low: int = 0) -> int:
    if text in words:
        return words.index(text) + low
    if not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise ValueError(f"the {name} {text[:20]!r} is no number")
    return int(text)
