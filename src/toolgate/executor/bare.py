"""Answers without their envelope: the result alone, or the error that the envelope would tell."""

from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import msgspec

from toolgate.call import Asked, Failure, Grant, Output, Turn
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

Run = Callable[[Grant, dict[str, Any], Turn | None, Asked], Coroutine[Any, Any, Output]]
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


def untold(run: Run) -> Run:
    """The same, and nobody is told what a tool does to the world."""

    async def quiet(grant: Grant, args: dict[str, Any], turn: Turn | None, asked: Asked) -> Output:
        return msgspec.structs.replace(await run(grant, args, turn, asked), side_effects=())

    return quiet


def _raise(failure: Failure, call_id: str) -> NoReturn:
    kind = _BY_CODE.get(failure.code, ExecutionFailed)
    raise kind(failure.message, **{**failure.details, "call_id": call_id})
