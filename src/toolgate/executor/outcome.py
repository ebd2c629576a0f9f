"""What is known about a call that did not end well."""

from toolgate.errors import CallRefused, ExtensionFailed, InvalidOutput, ToolError
from toolgate.ledger.state import State
from toolgate.spec.effect import Effect


def outcome(effect: Effect, error: BaseException) -> State:
    """Only what is known not to have happened, or is harmless to repeat, has failed."""
    if isinstance(error, InvalidOutput):
        return State.SUCCEEDED
    if isinstance(error, ExtensionFailed) and error.ran is not None:
        return State.SUCCEEDED if error.ran else State.FAILED
    if effect.repeatable or isinstance(error, (ToolError, CallRefused)):
        return State.FAILED
    return State.UNKNOWN
