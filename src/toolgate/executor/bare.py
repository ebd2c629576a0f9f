"""Answers without their envelope: the result alone, or the error that the envelope would tell."""

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any, NoReturn

import msgspec

from toolgate.asked import Asked
from toolgate.call import Failure, Output, Turn
from toolgate.caller import Caller
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
from toolgate.executor.aftercare.probing import Perform

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


def barely(
    call: Callable[..., Coroutine[Any, Any, Output]],
) -> "Callable[..., CoroutineType[Any, Any, Any]]":
    """The same verb, answered with the result alone."""

    async def run(tool: str, args: dict[str, Any] | None, **how: Any) -> Any:
        return bare(await call(tool, args, **how))

    return run


def untold(perform: Perform) -> Perform:
    """The same, and nobody is told what a tool does to the world."""

    async def quiet(
        tool: str, args: dict[str, Any], *, caller: Caller, turn: Turn | None, asked: Asked
    ) -> Output:
        output = await perform(tool, args, caller=caller, turn=turn, asked=asked)
        return msgspec.structs.replace(output, side_effects=())

    return quiet


def _raise(failure: Failure, call_id: str) -> NoReturn:
    kind = _BY_CODE.get(failure.code, ExecutionFailed)
    raise kind(failure.message, **{**failure.details, "call_id": call_id})
