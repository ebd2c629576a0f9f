"""Rate limits by one moment a key: when it will have been used fairly. Pure; it is told the time.

A limit of `calls` in `per` seconds refills one call every `per / calls` seconds and saves up to
`calls` of them. So all of them can be used at once, then one by one; and however the clock stands,
no stretch of `per` seconds sees more than twice as many.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

_SECOND = 1_000_000_000
_MOST_KEYS = 50_000


class Limit(NamedTuple):
    """What is counted under `key`, and how much of it is let through."""

    key: str
    # Nanoseconds: what one call costs, and how far ahead of the clock a key may run.
    interval_ns: int
    ahead_ns: int
    calls: int
    per: float


def limit(key: str, calls: int, per: float, *, share: int = 1) -> Limit:
    """So many calls in so many seconds; or the part of them that one of `share` processes has."""
    interval = max(round(per * _SECOND * share / calls), 1)
    saved = max(calls // share, 1)
    return Limit(key, interval, interval * (saved - 1), calls, per)


class Refused(NamedTuple):
    """The limit that lets nothing through, and for how long."""

    limit: Limit
    wait_ns: int


class Meter:
    """What was used of each key, in bounded memory."""

    def __init__(self, most: int = _MOST_KEYS) -> None:
        self._most = most
        self._fair_ns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._fair_ns)

    def take(self, limits: Sequence[Limit], now_ns: int) -> Refused | None:
        """Use one call of every limit, or of none of them."""
        fair = self._fair_ns
        if len(limits) == 1:
            only = limits[0]
            at = fair.get(only.key, 0)
            if at <= now_ns:
                at = now_ns
            elif at - now_ns > only.ahead_ns:
                return self._refused(only, at, now_ns)
            fair[only.key] = at + only.interval_ns
        else:
            used: dict[str, int] = {}
            for one in limits:
                at = fair.get(one.key, 0)
                if at <= now_ns:
                    at = now_ns
                elif at - now_ns > one.ahead_ns:
                    return self._refused(one, at, now_ns)
                used[one.key] = at + one.interval_ns
            fair.update(used)
        if len(fair) > self._most:
            self._forget(now_ns)
        return None

    def _refused(self, one: Limit, at_ns: int, now_ns: int) -> Refused:
        # No further ahead than who has used it all: the limit may have been larger before.
        at_ns = min(at_ns, now_ns + one.ahead_ns + one.interval_ns)
        self._fair_ns[one.key] = at_ns
        return Refused(one, at_ns - now_ns - one.ahead_ns)

    def _forget(self, now_ns: int) -> None:
        """A key whose moment is past is as good as new. Of too many others those go that are the
        least ahead: who floods the memory with names wins nothing for the one that is used up.
        """
        live = {key: at for key, at in self._fair_ns.items() if at > now_ns}
        if len(live) > self._most // 2:
            live = dict(heapq.nlargest(self._most // 2, live.items(), key=lambda one: one[1]))
        self._fair_ns.clear()
        self._fair_ns.update(live)
