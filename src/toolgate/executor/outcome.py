"""What is known about a call that did not end well."""

from toolgate.call import Call
from toolgate.errors import CallRefused, ExtensionFailed, InvalidOutput, TimedOut, ToolError
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect

_BEGUN = "call {} had begun"


def outcome(effect: Effect, error: BaseException) -> State:
    """Only what is known not to have happened, or is harmless to repeat, has failed."""
    if isinstance(error, InvalidOutput):
        return State.SUCCEEDED
    if isinstance(error, ExtensionFailed) and error.ran is not None:
        return State.SUCCEEDED if error.ran else State.FAILED
    if effect is Effect.PURE or isinstance(error, (ToolError, CallRefused)):
        return State.FAILED
    if effect.repeatable and isinstance(error, Exception) and not isinstance(error, TimedOut):
        return State.FAILED
    # What is not waited for any more may go on, and happen yet.
    return State.UNKNOWN


def comes_again(call: Call, error: BaseException) -> bool:
    """Whether a queue brings it once more: it was refused for now, and nothing was begun."""
    is_refused = isinstance(error, CallRefused) and error.retryable
    return is_refused and bool(call.asked.delivered)


def mark_begun(error: BaseException, call_id: str) -> None:
    """The caller of this call goes away, and its tool was reached by then.

    On the error that goes out to them, by the call: one that is inside another goes out with it.
    """
    error.add_note(_BEGUN.format(call_id))


def has_begun(error: BaseException, call_id: str) -> bool:
    """Whether a call that its caller left had come as far as its tool."""
    return _BEGUN.format(call_id) in getattr(error, "__notes__", ())


def is_paid(effect: Effect, error: BaseException) -> bool:
    """Whether it costs: a side effect that began, unless it is known not to have happened.

    Of what is pure, what was answered: also the part of a result that was there in time.
    """
    if effect is Effect.PURE:
        if isinstance(error, TimedOut):
            return error.produced is not None
        return outcome(effect, error) is State.SUCCEEDED
    if isinstance(error, ExtensionFailed) and error.ran is not None:
        return error.ran
    return not isinstance(error, (ToolError, CallRefused))
