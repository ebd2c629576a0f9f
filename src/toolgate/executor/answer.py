"""What a caller is answered where there is no result."""

from typing import Any

import msgspec
import orjson

from toolgate import clock
from toolgate.call import Call, Failure, Output, Status
from toolgate.errors import (
    ApprovalPending,
    CallFailed,
    ExecutionFailed,
    ExtensionFailed,
    InputNeeded,
    Superseded,
    TimedOut,
    ToolError,
    ToolgateError,
)
from toolgate.executor.outcome import outcome
from toolgate.ledger.state import State

# Failures in a tool's own words; those of all others are the house's.
_SAID = frozenset({ExecutionFailed.code, InputNeeded.code, ToolError.code})
_MAYBE = "The tool may have run: check before you call it again."


def is_answer(error: BaseException) -> bool:
    """Whether it is answered as an Output; anything else is raised."""
    return isinstance(error, (CallFailed, ApprovalPending, Superseded))


def answer(call: Call, error: BaseException) -> Output:
    """The Output that tells of an error."""
    if not isinstance(error, ToolgateError):
        broken = f"An extension failed with {type(error).__name__}. {_MAYBE}"
        error = ExtensionFailed(broken)
    spec = call.grant.spec
    unknown = isinstance(error, CallFailed) and outcome(spec.effect, error) is State.UNKNOWN
    retryable = error.retryable or (isinstance(error, TimedOut) and spec.effect.repeatable)
    output = Output(
        status=_status(error, unknown=unknown),
        data=error.produced if isinstance(error, (ExecutionFailed, TimedOut)) else None,
        error=Failure(
            code=error.code,
            message=error.message,
            retryable=retryable,
            details=_sendable(error.details) | ({"outcome": "unknown"} if unknown else {}),
        ),
        call_id=error.call_id or call.id,
        duration_ms=(clock.monotonic_ns() - (error.began_ns or call.began_ns)) / 1e6,
        side_effects=spec.side_effects,
    )
    return labelled(output) if spec.retells else output


def labelled(output: Output) -> Output:
    """Of a tool that tells what others wrote: as untrusted, unless only the house speaks in it."""
    error = output.error
    if output.untrusted or (error is not None and output.data is None and error.code not in _SAID):
        return output
    return msgspec.structs.replace(output, untrusted=True)


def _status(error: ToolgateError, *, unknown: bool) -> Status:
    if isinstance(error, ApprovalPending):
        return "pending_approval"
    if isinstance(error, Superseded):
        return "superseded"
    if isinstance(error, TimedOut) and error.produced is not None:
        return "partial"
    return "unknown" if unknown else "error"


def _sendable(details: dict[str, Any]) -> dict[str, Any]:
    """Details that every door can send; a value that is not JSON is told by its type."""
    try:
        return orjson.loads(orjson.dumps(details, default=lambda value: type(value).__name__))
    except TypeError:
        return {}
