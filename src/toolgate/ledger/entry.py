"""One call on record, and the only ways its state may change."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from toolgate.spec.effect import CallerKind, Effect


class State(StrEnum):
    """How far a call got. `failed` is known not to have happened; `unknown` is not known at all."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


MOVES: Mapping[State | None, frozenset[State]] = {
    # Repeatable calls are written once, when they are over.
    None: frozenset({State.STARTED, State.SUCCEEDED, State.FAILED, State.UNKNOWN}),
    State.STARTED: frozenset({State.SUCCEEDED, State.FAILED, State.UNKNOWN}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.UNKNOWN: frozenset(),
}


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is written before a side effect, and completed after it."""

    call_id: str
    tool: str
    fingerprint: str
    effect: Effect
    tenant: str
    agent: str
    user: str
    persona: str
    session: str
    turn_group: str
    caller_kind: CallerKind
    args: bytes
    started_ns: int
    state: State
    duration_ns: int = 0
    error_code: str = ""
    error_message: str = ""
    # Known for an entry that was read back; else made from `args` when it is written.
    args_hash: str = ""
    # The decision that let it pass. Last, so that pages written without it can be read.
    decision: str = ""
