"""What is known about a call that did not end well."""

from toolgate.errors import CallRefused, InvalidOutput, ToolError
from toolgate.ledger.entry import State
from toolgate.spec.effect import Effect


def outcome(effect: Effect, error: BaseException) -> State:
    """Only what is known not to have happened, or is harmless to repeat, has failed."""
    if isinstance(error, InvalidOutput):
        return State.SUCCEEDED
    if effect.repeatable or isinstance(error, (ToolError, CallRefused)):
        return State.FAILED
    return State.UNKNOWN
