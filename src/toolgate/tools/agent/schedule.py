"""When something is to happen: once, again and again, or by a cron line; in UTC."""

import re
from datetime import UTC, datetime

import msgspec

from toolgate import clock
from toolgate.errors import ToolError
from toolgate.tools.agent.cron import read_cron

_SECOND = 1_000_000_000
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_SPAN = re.compile(
    r"(in|every) (?:(\d{1,7}|an?) ?)?(s|sec|second|m|min|minute|h|hour|d|day|w|week)s?"
)
_SHORT = {"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour"} | {
    "d": "day",
    "w": "week",
}
_LONGEST = 200
_SHORTEST_S = 60
_FARTHEST = 5 * 366 * 86_400 * _SECOND
HOW = (
    "Write a time such as '2026-12-24T18:00:00Z', 'in 5 minutes', 'every 10 minutes', or a cron "
    "line of five fields such as '0 9 * * mon-fri'. Times are in UTC."
)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One of three: `at_ns`, `every_s` from `at_ns` on, or `cron`."""

    at_ns: int = 0
    every_s: int = 0
    cron: str = ""

    @property
    def repeats(self) -> bool:
        """Whether it comes more than once."""
        return bool(self.every_s or self.cron)

    def after(self, now_ns: int) -> int | None:
        """The next moment behind this one. What was missed meanwhile is not made up for."""
        if self.cron:
            following = read_cron(self.cron).after(clock.moment_of(now_ns))
            return None if following is None else clock.unix_of(following)
        if self.every_s:
            step = self.every_s * _SECOND
            return self.at_ns + max(0, (now_ns - self.at_ns) // step + 1) * step
        return self.at_ns if self.at_ns > now_ns else None


def read_schedule(text: str, now_ns: int) -> Schedule:
    """What a caller wrote."""
    given = " ".join(text.lower().split())
    if not given or len(given) > _LONGEST:
        raise ToolError(f"The schedule is empty or too long. {HOW}")
    if given == "now":
        return Schedule(at_ns=now_ns + 1)
    span = _SPAN.fullmatch(given)
    if span is not None:
        return _span(span, now_ns)
    if given.startswith("@") or len(given.split()) == 5:
        return _cron(given)
    return _moment(text.strip(), now_ns)


def _span(span: re.Match[str], now_ns: int) -> Schedule:
    how, number, unit = span.groups()
    if number is None and how == "in":
        raise ToolError(f"The schedule does not say in how long. {HOW}")
    count = int(number) if number and number.isdigit() else 1
    seconds = count * _UNITS[_SHORT.get(unit, unit)]
    if seconds * _SECOND > _FARTHEST:
        raise ToolError(f"That is more than five years away. {HOW}")
    if how == "in":
        return Schedule(at_ns=now_ns + max(1, seconds * _SECOND))
    if seconds < _SHORTEST_S:
        raise ToolError("Again and again means every minute at the most. Take a longer time.")
    return Schedule(at_ns=now_ns + seconds * _SECOND, every_s=seconds)


def _cron(given: str) -> Schedule:
    try:
        cron = read_cron(given)
    except ValueError as error:
        raise ToolError(f"The cron line cannot be read: {error}. {HOW}") from None
    if cron.after(datetime(2024, 1, 1, tzinfo=UTC)) is None:
        raise ToolError(f"No day is ever such a day. {HOW}")
    return Schedule(cron=given)


def _moment(given: str, now_ns: int) -> Schedule:
    try:
        moment = datetime.fromisoformat(given.removeprefix("at ").strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        at_ns = clock.unix_of(moment)
    except (ValueError, OverflowError):
        raise ToolError(f"The schedule {given[:60]!r} cannot be read. {HOW}") from None
    if at_ns <= now_ns:
        now = clock.moment_of(now_ns).isoformat(timespec="seconds")
        raise ToolError(f"That time is over: it is {now} now. {HOW}")
    if at_ns - now_ns > _FARTHEST:
        raise ToolError(f"That is more than five years away. {HOW}")
    return Schedule(at_ns=at_ns)
