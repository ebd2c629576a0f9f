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


class Permit:
    """One call that was let in. It is used up when it leaves."""

    __slots__ = ("period", "started_ns", "used")

    def __init__(self, period: int, started_ns: int) -> None:
        self.period = period
        self.started_ns = started_ns
        self.used = False


class Breaker:
    """One for each thing that can fail by itself."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._state = State.CLOSED
        # Counts the changes of state: what entered in an earlier one has nothing to say any more.
        self._period = 0
        self._since_ns = 0
        self._outcomes: deque[tuple[bool, bool]] = deque(maxlen=self._limits.window)
        self._failed = 0
        self._slow = 0
        self._inside = 0
        self._lock = Lock()

    def state(self, now_ns: int) -> State:
        """Whether calls pass at this time."""
        with self._lock:
            self._settle(now_ns)
            return self._state

    def enter(self, now_ns: int) -> Permit | None:
        """A permit for one call; none while it is open or enough probes are out."""
        with self._lock:
            self._settle(now_ns)
            if self._state is State.OPEN:
                return None
            if self._state is State.HALF_OPEN:
                if self._inside + len(self._outcomes) >= self._limits.probes:
                    return None
                self._inside += 1
            return Permit(self._period, now_ns)

    def leave(self, permit: Permit, now_ns: int, outcome: Outcome) -> None:
        """How a call ended. Late news of an earlier state changes nothing."""
        with self._lock:
            self._settle(now_ns)
            if permit.used:
                return
            permit.used = True
            if permit.period != self._period:
                return
            if self._state is State.HALF_OPEN:
                self._inside -= 1
            if outcome is Outcome.IGNORED:
                return
            slow = now_ns - permit.started_ns >= self._limits.slow_seconds * _SECOND
            self._count(failed=outcome is Outcome.FAILED, slow=slow)
            self._judge(now_ns)

    def _settle(self, now_ns: int) -> None:
        """What time alone changes."""
        passed = now_ns - self._since_ns
        if self._state is State.OPEN and passed >= self._limits.wait * _SECOND:
            self._become(State.HALF_OPEN, now_ns)
        elif self._state is State.HALF_OPEN and passed >= self._limits.patience * _SECOND:
            self._become(State.OPEN, now_ns)

    def _count(self, *, failed: bool, slow: bool) -> None:
        if len(self._outcomes) == self._outcomes.maxlen:
            was_failed, was_slow = self._outcomes[0]
            self._failed -= was_failed
            self._slow -= was_slow
        self._outcomes.append((failed, slow))
        self._failed += failed
        self._slow += slow

    def _judge(self, now_ns: int) -> None:
        limits, seen = self._limits, len(self._outcomes)
        half_open = self._state is State.HALF_OPEN
        if seen < (limits.probes if half_open else limits.at_least):
            return
        if self._failed >= limits.failed_share * seen or self._slow >= limits.slow_share * seen:
            self._become(State.OPEN, now_ns)
        elif half_open:
            self._become(State.CLOSED, now_ns)

    def _become(self, state: State, now_ns: int) -> None:
        self._state, self._since_ns = state, now_ns
        self._period += 1
        self._failed = self._slow = self._inside = 0
        most = self._limits.probes if state is State.HALF_OPEN else self._limits.window
        self._outcomes = deque(maxlen=most)
