"""What a caller is told of a tool that failed by itself, and what the operator is."""

import logging
import traceback

from toolgate.call import Call
from toolgate.errors import ExecutionFailed

log = logging.getLogger("toolgate.tools")


def execution_failed(call: Call, error: BaseException) -> ExecutionFailed:
    """The exception's own text can hold anything, secrets too: only its kind is told."""
    spec, kind = call.spec, type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name}, line {frames[-1].lineno}" if frames else "unknown place"
    log.warning(
        "tool %s failed with %s in %s (call %s); raise toolgate.ToolError in it to tell callers "
        "more",
        spec.name,
        kind,
        place,
        call.id,
    )
    advice = (
        "The same call may fail again: change the arguments, or do without it."
        if spec.effect.repeatable
        else "It may have taken effect: check before you call it again."
    )
    return ExecutionFailed(f"{spec.name!r} failed with {kind}, an error of its own. {advice}")
