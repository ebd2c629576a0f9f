"""Who was not let in, for who runs the house: whoever knocks is not told why."""

import logging
from collections.abc import Callable
from enum import StrEnum

from toolgate import clock
from toolgate.errors import Unauthenticated
from toolgate.tenancy.keys import not_valid

log = logging.getLogger("toolgate.server")
# Whoever knocks without end fills no log: a reason is told so often, with how many there were.
_EVERY_NS = 10_000_000_000


class Reason(StrEnum):
    """What is counted. Each is a word of ours, and holds nothing of what was sent."""

    NO_KEY = "no_key"
    # Also one that was revoked: nothing of it is kept.
    UNKNOWN_KEY = "unknown_key"
    EXPIRED_KEY = "expired_key"
    UNREADABLE = "token_unreadable"
    SIGNATURE = "token_signature"
    ISSUER = "token_issuer"
    AUDIENCE = "token_audience"
    TIME = "token_time"
    CLAIMS = "token_claims"
    SCOPE = "token_scope"
    # Its tenant or agent is not on record.
    HOLDER = "token_holder"


class Unfit(Unauthenticated):
    """A token that opens nothing, and why: its caller reads the same sentence as any other."""

    def __init__(self, reason: Reason, why: str = "it cannot be read") -> None:
        super().__init__(not_valid().message)
        self.reason = reason
        self.why = why


def _uncounted(_reason: str) -> None:
    """Nobody keeps numbers."""


class Refusals:
    """Counted by reason; of tokens the log has a sentence too."""

    def __init__(self, count: Callable[[str], None] = _uncounted) -> None:
        self._count = count
        self._told_ns: dict[str, int] = {}
        self._since: dict[str, int] = {}

    def note(self, reason: Reason) -> None:
        """One more."""
        self._count(reason.value)

    def tell(self, reason: Reason, why: str) -> None:
        """One more token. The sentences are ours, and hold nothing of it."""
        self.note(reason)
        now_ns = clock.monotonic_ns()
        count = self._since[why] = self._since.get(why, 0) + 1
        if why in self._told_ns and now_ns - self._told_ns[why] < _EVERY_NS:
            return
        self._told_ns[why], self._since[why] = now_ns, 0
        log.warning("a token was refused: %s (%d since this was last told)", why, count)
