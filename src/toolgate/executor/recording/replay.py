"""What is answered where a call is on record already."""

import msgspec

from toolgate.call import Failure, Output
from toolgate.errors import (
    ApprovalPending,
    IdempotencyConflict,
    InProgress,
    StoreMismatch,
    ToolgateError,
)
from toolgate.ledger.entry import Entry
from toolgate.ledger.state import State
from toolgate.spec.tool import ToolSpec

_decode = msgspec.json.Decoder(Output).decode
_UNDONE = frozenset({State.COMPENSATING, State.COMPENSATED})
# It was done, and still is.
_DONE = frozenset({State.SUCCEEDED, State.COMPENSATION_FAILED})


def replayed(entry: Entry) -> Output:
    """The first answer again, marked as such."""
    if entry.state in _UNDONE:
        return _told(
            entry,
            "skipped",
            "undone",
            f"{entry.tool!r} was done and taken back. To do it again, begin a new turn.",
        )
    if entry.result:
        try:
            output = _decode(entry.result)
        except msgspec.DecodeError:
            raise StoreMismatch(
                f"What is on record of call {entry.call_id} cannot be read: it is damaged, or a "
                "newer version wrote it. Nothing ran."
            ) from None
        if entry.state not in _DONE or not _is_unsure(output):
            return msgspec.structs.replace(output, cached=True, call_id=entry.call_id)
    if entry.state in _DONE:
        # An operator, or a probe, knows that it happened; nobody saw its result.
        return Output(status="success", cached=True, call_id=entry.call_id)
    if entry.state is State.UNKNOWN:
        return _told(
            entry,
            "unknown",
            "outcome_unknown",
            f"{entry.tool!r} was begun, and nobody saw how it ended. It is not run again by "
            "itself: check what it did, or ask an operator to settle it.",
        )
    if entry.state is State.WAITING:
        # Nothing answers for a key before it has begun, but a call that an operator runs again.
        return _told(
            entry,
            "pending_approval",
            ApprovalPending.code,
            f"{entry.tool!r} is run again by an operator, and waits for a person. It is not begun "
            "a second time: ask for its result later.",
        )
    code = entry.error_code or ToolgateError.code
    return _told(entry, "error", code, entry.error_message or "It did not happen.")


def conflict(entry: Entry, spec: ToolSpec) -> IdempotencyConflict:
    """The key was used, for something else. Who sent none is told what it was made of."""
    if entry.scope.endswith("/turn"):
        fields = ", ".join(map(repr, spec.idempotency_key))
        same = f" with the same {fields}" if fields else ""
        return IdempotencyConflict(
            f"In this turn {entry.tool!r} was called already{same}, but with other arguments or "
            "another definition. It is done once in a turn, so nothing ran: send the same "
            "arguments to get its result, or do this in a new turn.",
            call_id=entry.call_id,
            idempotency_fields=list(spec.idempotency_key),
        )
    return IdempotencyConflict(
        f"The idempotency key of this call belongs to another call of {entry.tool!r}, with other "
        "arguments or another definition. Nothing ran: use a new key, or send the same call.",
        call_id=entry.call_id,
    )


def in_progress(entry: Entry) -> InProgress:
    """The same call runs, here or elsewhere."""
    return InProgress(
        f"The same call of {entry.tool!r} is running already. Ask for its result in a moment: "
        "it is not run twice.",
        call_id=entry.call_id,
        retry_after=1,
    )


def _is_unsure(output: Output) -> bool:
    """What its caller was told before it was settled."""
    return output.error is not None and output.error.details.get("outcome") == "unknown"


def _told(entry: Entry, status: str, code: str, message: str) -> Output:
    unknown = {"outcome": "unknown"} if entry.state is State.UNKNOWN else {}
    return Output(
        status=status,  # pyright: ignore[reportArgumentType]
        error=Failure(code=code, message=message, details=unknown),
        cached=True,
        call_id=entry.call_id,
        duration_ms=entry.duration_ns / 1e6,
    )
