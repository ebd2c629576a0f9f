"""Extensions: what happens around every call, in an order that priorities decide.

Subclass `Extension` and define the hooks you need, async or not; a hook that is not defined costs
nothing. The built-in links are extensions too and stand in the same order.
"""

import inspect
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, cast

import msgspec

from toolgate.call import Call, Output
from toolgate.errors import (
    CallFailed,
    CallRefused,
    ExtensionFailed,
    InvalidOutput,
    ToolError,
    ToolgateError,
)
from toolgate.ledger.journal import Outdated

# A coroutine, not any awaitable: the deadline steps it by hand.
Handler = Callable[[Call], Coroutine[Any, Any, Output]]


class Priority(IntEnum):
    """Where an extension stands among the built-in ones. Lower numbers are further out."""

    HIGHEST = 100  # sees every call, also those with wrong arguments
    HIGH = 250  # arguments are valid
    NORMAL = 350  # nobody has to be asked any more
    LOW = 450  # the intent is on record
    LOWEST = 500  # next to the provider


class Extension:
    """One link of the chain.

    Hooks, each optional:
    `before(call)` may return an Output to answer without running;
    `after(call, output)` may return another Output;
    `failed(call, error)` may return an Output instead of the error.

    A hook refuses by raising, as long as nothing has run: afterwards a refusal would be untrue and
    becomes an `ExtensionFailed`.
    """

    priority: int = Priority.NORMAL

    def link(self, inner: Handler) -> Handler:
        """Wrap the rest of the chain. Override this only to stand around it."""
        return _hooked(self, inner)


Hook = Callable[..., Coroutine[Any, Any, Output | None]]
_NOT_YET = False
_RAN = {
    True: "The tool had run before that.",
    False: "The tool did not run.",
    None: "The tool may have run.",
}


def _hooked(extension: Extension, inner: Handler) -> Handler:
    before = _hook(extension, "before")
    after = _hook(extension, "after")
    failed = _hook(extension, "failed")
    if before is not None or after is not None:
        inner = _before_and_after(before, after, inner)
    if failed is None:
        return inner

    async def run(call: Call) -> Output:
        try:
            return await inner(call)
        except Outdated:
            # Nothing has failed: the call is decided anew.
            raise
        except ToolgateError as error:
            ran = _ran(error)
            recovered = await failed(ran, call, error)
            if recovered is None:
                raise
            return _answered(call, recovered) if ran is False else _named(recovered, call.id)

    return run


def _before_and_after(before: Hook | None, after: Hook | None, inner: Handler) -> Handler:
    async def run(call: Call) -> Output:
        if before is not None:
            answer = await before(_NOT_YET, call)
            if answer is not None:
                return _answered(call, answer)
        output = await inner(call)
        if after is not None:
            other = await after(has_run(call, output), call, output)
            if other is not None:
                return _named(other, output.call_id)
        return output

    return run


def _hook(extension: Extension, name: str) -> Hook | None:
    """The hook as a coroutine function that raises only our errors, or `None`."""
    hook = cast("Callable[..., Any] | None", getattr(extension, name, None))
    if hook is None:
        return None
    label = type(extension).__name__

    async def guarded(ran: bool | None, *args: Any) -> Output | None:  # noqa: FBT001
        try:
            answer = hook(*args)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            if isinstance(error, ToolgateError) and _is_true(error, ran=ran):
                raise
            what = f"failed with {type(error).__name__} in {name}"
            raise _extension_failed(label, name, what, ran=ran) from error
        if answer is not None and not isinstance(answer, Output):
            what = f"returned a {type(answer).__name__} from {name} instead of an Output or None"
            raise _extension_failed(label, name, what, ran=ran)
        return answer

    return guarded


def _ran(error: ToolgateError) -> bool | None:
    """Whether the tool did its work, as far as its error tells."""
    if isinstance(error, ExtensionFailed):
        return error.ran
    if isinstance(error, InvalidOutput):
        return True
    return False if isinstance(error, (CallRefused, ToolError)) else None


def _is_true(error: ToolgateError, *, ran: bool | None) -> bool:
    """Whether a hook may raise this: what says that nothing happened has to be right."""
    return ran is False or (isinstance(error, CallFailed) and not isinstance(error, ToolError))


def _answered(call: Call, answer: Output) -> Output:
    """Inside the chain an Output bears its call's id once the tool has run, and not before."""
    return _named(answer, "") if answer.call_id == call.id else answer


def has_run(call: Call, output: Output) -> bool:
    """Whether the tool has run for this call. One that a person agreed to runs under the id that
    it waited by.
    """
    if output.call_id == call.id:
        return True
    return bool(call.approval and output.call_id) and not output.cached


def _named(output: Output, call_id: str) -> Output:
    if output.call_id == call_id:
        return output
    return msgspec.structs.replace(output, call_id=call_id)


def _extension_failed(label: str, hook: str, what: str, *, ran: bool | None) -> ExtensionFailed:
    return ExtensionFailed(
        f"The extension {label} {what}. {_RAN[ran]}", ran=ran, extension=label, hook=hook
    )
