"""What `filter` says: conditions on where and when a memory was saved.

    tag=billing, date>=2026-01-01, user!="Anna B.", text~invoice

All of them have to hold. A date may be a year, a month, a day or a moment, in UTC; `=` means
within it. `~` is for text that a memory holds, whatever its case.
"""

import re
from collections.abc import Callable

import msgspec

from toolgate.errors import ToolError
from toolgate.tools.memory.remembered import Remembered

_CONDITION = re.compile(
    r"\s*(?P<key>[A-Za-z_]+)\s*(?P<sign>!=|<=|>=|=|<|>|~)\s*"
    r'(?:"(?P<quoted>[^"]{0,200})"|(?P<bare>[^\s,"]{1,200}))\s*(?:,|\band\b|$)',
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\dZ?)?)?)?)?)?\Z")
_MOST = 20
_LONGEST = 2_000
_HELP = (
    'Write conditions with commas between them, such as: tag=billing, date>=2026-01-01, text~"two '
    'words". Keys are tag, date, agent, user, session and text; signs are = != < <= > >= for date, '
    "= != for the others and ~ for text."
)
_SAME: dict[str, Callable[[Remembered], list[str]]] = {
    "tag": lambda one: one.tags,
    "agent": lambda one: [one.agent],
    "user": lambda one: [one.user],
    "session": lambda one: [one.session],
}
# Two dates as texts of the same length, or of the shorter one's.
_ORDER: dict[str, Callable[[str, str], bool]] = {
    "=": lambda saved, given: saved[: len(given)] == given,
    "!=": lambda saved, given: saved[: len(given)] != given,
    "<": lambda saved, given: saved[: len(given)] < given,
    "<=": lambda saved, given: saved[: len(given)] <= given,
    ">": lambda saved, given: saved[: len(given)] > given,
    ">=": lambda saved, given: saved[: len(given)] >= given,
}


class Condition(msgspec.Struct, frozen=True):
    """One of them."""

    key: str
    sign: str
    value: str

    def holds(self, memory: Remembered) -> bool:
        """Whether a memory is of that kind."""
        if self.key == "date":
            return _ORDER[self.sign](memory.saved, self.value)
        if self.key == "text":
            return self.value.casefold() in memory.text.casefold()
        has = self.value in _SAME[self.key](memory)
        return has if self.sign == "=" else not has


class Conditions(msgspec.Struct, frozen=True):
    """All of a filter; none lets everything through."""

    each: tuple[Condition, ...] = ()

    def __call__(self, memory: Remembered) -> bool:
        return all(one.holds(memory) for one in self.each)

    @property
    def keys(self) -> frozenset[str]:
        """What they look at."""
        return frozenset(one.key for one in self.each)


def read_filter(text: str) -> Conditions:
    """A filter as a caller writes it."""
    found: list[Condition] = []
    at = 0
    text = text.strip()
    if len(text) > _LONGEST:
        raise ToolError(f"A filter has at most {_LONGEST:,} characters. {_HELP}")
    while at < len(text):
        part = _CONDITION.match(text, at)
        if part is None or len(found) >= _MOST:
            raise ToolError(f"The filter cannot be read from {text[at : at + 40]!r} on. {_HELP}")
        found.append(_condition(part))
        at = part.end()
    return Conditions(tuple(found))


def _condition(part: re.Match[str]) -> Condition:
    key, sign = part["key"].lower(), part["sign"]
    value = part["quoted"] if part["quoted"] is not None else part["bare"]
    allowed = {"date": frozenset(_ORDER), "text": frozenset("~")}.get(key, frozenset({"=", "!="}))
    if key not in {*_SAME, "date", "text"}:
        raise ToolError(f"There is no key {key!r} to filter by. {_HELP}")
    if sign not in allowed:
        raise ToolError(f"{key!r} cannot be compared with {sign!r}. {_HELP}")
    if key == "date" and not _DATE.match(value):
        raise ToolError(f"{value!r} is no date such as 2026, 2026-01 or 2026-01-31. {_HELP}")
    return Condition(key, sign, value.lstrip("#").casefold() if key == "tag" else value)
