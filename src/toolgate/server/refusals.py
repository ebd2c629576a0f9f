"""Tokens that were refused, for who runs the house: whoever knocks is not told why."""

import logging

from toolgate import clock

log = logging.getLogger("toolgate.server")
# Whoever knocks without end fills no log: a reason is told so often, with how many there were.
_EVERY_NS = 10_000_000_000


class Refusals:
    """Counted by reason. The reasons are sentences of ours, and hold nothing of the token."""

    def __init__(self) -> None:
        self._told_ns: dict[str, int] = {}
        self._since: dict[str, int] = {}

    def tell(self, why: str = "it cannot be read") -> None:
        """One more."""
        now_ns = clock.monotonic_ns()
        count = self._since[why] = self._since.get(why, 0) + 1
        if why in self._told_ns and now_ns - self._told_ns[why] < _EVERY_NS:
            return
        self._told_ns[why], self._since[why] = now_ns, 0
        log.warning("a token was refused: %s (%d since this was last told)", why, count)
