"""How far a call got, and the only ways on from there.

received ── reserved ──┬── waiting ──┐
    │           │      │             ├── claimed ── started ──┬── succeeded ── compensating
    └───────────┴──────┴─────────────┘      │          │      ├── failed            │
                                            └──────────┴──────┴── unknown      compensated

What was started, and refused before it began, is released; brought again, it is claimed again. So
is what is unknown here, and known to the far side by its key.
"""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """`failed` is known not to have happened; `unknown` is not known at all."""

    RECEIVED = "received"
    RESERVED = "reserved"  # rate and budget are set aside for it
    WAITING = "waiting"  # for a person
    CLAIMED = "claimed"  # somebody owns it, for a time and with a fence; nothing was tried
    STARTED = "started"  # the intent is on record: from here on it may have happened
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RELEASED = "released"  # refused before it began; whoever queued it brings it again
    UNKNOWN = "unknown"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"
    SUPERSEDED = "superseded"  # newer messages came first; nothing was tried
    EXPIRED = "expired"  # nobody agreed, or nobody came, in time; nothing was tried


MOVES: Mapping[State, frozenset[State]] = {
    State.RECEIVED: frozenset(
        {
            State.RESERVED,
            State.WAITING,
            State.CLAIMED,
            State.STARTED,  # pure: nothing to claim
            State.FAILED,
            State.SUPERSEDED,
            State.EXPIRED,
        }
    ),
    State.RESERVED: frozenset(
        {
            State.WAITING,
            State.CLAIMED,
            State.STARTED,
            State.FAILED,
            State.SUPERSEDED,
            State.EXPIRED,
        }
    ),
    State.WAITING: frozenset({State.CLAIMED, State.FAILED, State.SUPERSEDED, State.EXPIRED}),
    State.CLAIMED: frozenset(
        {
            State.CLAIMED,  # by a later owner
            State.STARTED,
            State.SUCCEEDED,  # a probe says so
            State.FAILED,
            State.UNKNOWN,
            State.EXPIRED,
        }
    ),
    State.STARTED: frozenset(
        {State.SUCCEEDED, State.FAILED, State.UNKNOWN, State.CLAIMED, State.RELEASED}
    ),
    State.RELEASED: frozenset(
        {
            State.CLAIMED,
            State.WAITING,  # it needs a person by now
            State.FAILED,
            State.UNKNOWN,  # nobody brings it again, and an earlier owner's end was never seen
            State.EXPIRED,
        }
    ),
    State.SUCCEEDED: frozenset({State.COMPENSATING}),
    State.FAILED: frozenset(),
    State.UNKNOWN: frozenset(
        {
            State.SUCCEEDED,  # an operator, or a probe, says so
            State.FAILED,
            State.CLAIMED,  # asked for again, under the key that the far side knows
        }
    ),
    State.COMPENSATING: frozenset(
        {State.COMPENSATING, State.COMPENSATED, State.COMPENSATION_FAILED}
    ),
    State.COMPENSATED: frozenset(),
    State.COMPENSATION_FAILED: frozenset({State.COMPENSATING}),
    State.SUPERSEDED: frozenset(),
    State.EXPIRED: frozenset(),
}
# Somebody is at it: it has an owner, a fence and a lease.
OPEN = frozenset({State.CLAIMED, State.STARTED, State.COMPENSATING})
# Nothing follows.
LAST = frozenset(state for state, after in MOVES.items() if not after)


def reachable(state: State) -> frozenset[State]:
    """Every state that may follow, in any number of moves."""
    found: set[State] = set()
    waiting = [state]
    while waiting:
        for after in MOVES[waiting.pop()] - found:
            found.add(after)
            waiting.append(after)
    return frozenset(found)


def before(state: State) -> frozenset[State]:
    """The states that this one can directly follow: what an update is guarded by."""
    return frozenset(one for one, after in MOVES.items() if state in after)
