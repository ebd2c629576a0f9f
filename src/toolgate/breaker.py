"""A circuit breaker: what has failed too often is not asked for a while. Pure; it is told the time.

    closed     everything passes; the last `window` outcomes are kept
    open       nothing passes for `wait` seconds
    half open  at most `probes` pass; their outcomes decide. No longer than `patience` seconds

A call enters with a permit and leaves with an outcome. One that was cancelled, or failed for a
reason of its own, gives its permit back and counts as nothing.
"""

from collections import deque
from enum import Enum
from threading import Lock

import msgspec

_SECOND = 1_000_000_000
# Bits of an outcome in the window; one that is neither is 0.
_FAILED, _SLOW = 1, 2


class State(Enum):
    """Whether calls pass."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half open"


class Outcome(Enum):
    """How a call ended, for the breaker."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    IGNORED = "ignored"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When it opens and closes. Shares are of the outcomes in the window."""

    window: int = 20
    at_least: int = 5
    failed_share: float = 0.5
    slow_share: float = 1.0
    slow_seconds: float = 60.0
    wait: float = 5.0
    probes: int = 3
    patience: float = 30.0

    def __post_init__(self) -> None:
        """Limits that could never be met would be a breaker that never opens, or never closes."""
        if not 1 <= self.at_least <= self.window or self.probes < 1:
            raise ValueError("A breaker needs 1 <= at_least <= window, and at least one probe.")
        if not (0 < self.failed_share <= 1 and 0 < self.slow_share <= 1):
            raise ValueError("The shares of a breaker are above 0 and at most 1.")
        if self.wait <= 0 or self.patience <= 0 or self.slow_seconds <= 0:
            raise ValueError("The times of a breaker are above 0.")


# Looking a member up in its enum costs more than all else that a calm breaker does.
_CLOSED, _OPEN, _HALF_OPEN = State.CLOSED, State.OPEN, State.HALF_OPEN
_SUCCEEDED, _IGNORED = Outcome.SUCCEEDED, Outcome.IGNORED
_USED = -1


class Permit(msgspec.Struct, gc=False):
    """One call that was let in. It is used up when it leaves."""

    period: int
    started_ns: int


class Breaker:
    """One for each thing that can fail by itself."""

    __slots__ = (
        "_failed",
        "_inside",
        "_is_alert",
        "_limits",
        "_lock",
        "_outcomes",
        "_period",
        "_since_ns",
        "_slow",
        "_slow_ns",
        "_state",
    )

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._state = _CLOSED
        # Counts the changes of state: what entered in an earlier one has nothing to say any more.
        self._period = 0
        self._since_ns = 0
        self._outcomes: deque[int] = deque(maxlen=self._limits.window)
        self._failed = 0
        self._slow = 0
        self._inside = 0
        # Whether anything but good news is in the window, or it is not closed.
        self._is_alert = False
        self._slow_ns = int(self._limits.slow_seconds * _SECOND)
        self._lock = Lock()

    def state(self, now_ns: int) -> State:
        """Whether calls pass at this time."""
        with self._lock:
            self._settle(now_ns)
            return self._state

    def wait_left(self, now_ns: int) -> float:
        """Seconds until calls may pass again, as far as time alone can tell."""
        with self._lock:
            self._settle(now_ns)
            if self._state is not _OPEN:
                return 0.0
            return self._limits.wait - (now_ns - self._since_ns) / _SECOND

    def enter(self, now_ns: int) -> Permit | None:
        """A permit for one call; none while it is open or enough probes are out."""
        # Nothing is counted here while it is closed; a permit that comes too late is void.
        if self._state is _CLOSED:
            return Permit(self._period, now_ns)
        with self._lock:
            self._settle(now_ns)
            if self._state is _OPEN:
                return None
            if self._state is _HALF_OPEN:
                if self._inside + len(self._outcomes) >= self._limits.probes:
                    return None
                self._inside += 1
            return Permit(self._period, now_ns)

    def leave(self, permit: Permit, now_ns: int, outcome: Outcome) -> None:
        """How a call ended. Late news of an earlier state changes nothing."""
        period, permit.period = permit.period, _USED
        if (
            outcome is _SUCCEEDED
            and period == self._period
            and not self._is_alert
            and now_ns - permit.started_ns < self._slow_ns
        ):
            # All is well and stays so: nothing to weigh, so nothing to lock.
            self._outcomes.append(0)
            return
        with self._lock:
            if self._state is not _CLOSED:
                self._settle(now_ns)
            if period != self._period:
                return
            if self._state is _HALF_OPEN:
                self._inside -= 1
            if outcome is _IGNORED:
                return
            slow = _SLOW if now_ns - permit.started_ns >= self._slow_ns else 0
            self._count(slow | _FAILED if outcome is not _SUCCEEDED else slow)
            self._is_alert = bool(self._failed or self._slow) or self._state is not _CLOSED
            if self._is_alert:
                self._judge(now_ns)

    def _settle(self, now_ns: int) -> None:
        """What time alone changes."""
        passed = now_ns - self._since_ns
        if self._state is _OPEN and passed >= self._limits.wait * _SECOND:
            self._become(_HALF_OPEN, now_ns)
        elif self._state is _HALF_OPEN and passed >= self._limits.patience * _SECOND:
            self._become(_OPEN, now_ns)

    def _count(self, seen: int) -> None:
        outcomes = self._outcomes
        if len(outcomes) == outcomes.maxlen and (oldest := outcomes[0]):
            self._failed -= oldest & _FAILED
            self._slow -= oldest >> 1
        outcomes.append(seen)
        if seen:
            self._failed += seen & _FAILED
            self._slow += seen >> 1

    def _judge(self, now_ns: int) -> None:
        limits, seen = self._limits, len(self._outcomes)
        half_open = self._state is _HALF_OPEN
        if seen < (limits.probes if half_open else limits.at_least):
            return
        if self._failed >= limits.failed_share * seen or self._slow >= limits.slow_share * seen:
            self._become(_OPEN, now_ns)
        elif half_open:
            self._become(_CLOSED, now_ns)

    def _become(self, state: State, now_ns: int) -> None:
        self._state, self._since_ns = state, now_ns
        self._period += 1
        self._failed = self._slow = self._inside = 0
        self._is_alert = state is not _CLOSED
        most = self._limits.probes if state is _HALF_OPEN else self._limits.window
        self._outcomes = deque(maxlen=most)
