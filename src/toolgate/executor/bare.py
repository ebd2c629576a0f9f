"""Answers without their envelope: the result alone, or the error that the envelope would tell."""

from typing import Any, NoReturn

from toolgate.call import Failure, Output
from toolgate.errors import (
    ApprovalPending,
    ExecutionFailed,
    ExtensionFailed,
    InvalidOutput,
    Superseded,
    TimedOut,
    ToolError,
    ToolgateError,
)

_BY_CODE: dict[str, type[ToolgateError]] = {
    kind.code: kind
    for kind in (
        ApprovalPending,
        ExecutionFailed,
        ExtensionFailed,
        InvalidOutput,
        Superseded,
        TimedOut,
        ToolError,
    )
}


def bare(output: Output) -> Any:
    """The result. What has none is raised, whatever it would be as an Output."""
    if output.error is not None:
        _raise(output.error, output.call_id)
    return output.data


def _raise(failure: Failure, call_id: str) -> NoReturn:
    kind = _BY_CODE.get(failure.code, ExecutionFailed)
    raise kind(failure.message, **{**failure.details, "call_id": call_id})
