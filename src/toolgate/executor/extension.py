"""Extensions: what happens around every call, in an order that priorities decide.

Subclass `Extension` and define the hooks you need, async or not; a hook that is not defined costs
nothing. The built-in links are extensions too and stand in the same order.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from enum import IntEnum
from typing import Any, cast

from toolgate.call import Call, Output
from toolgate.errors import ExtensionFailed, ToolgateError

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
    """

    priority: int = Priority.NORMAL

    def link(self, inner: Handler) -> Handler:
        """Wrap the rest of the chain. Override this only to stand around it."""
        return _hooked(self, inner)


def _hooked(extension: Extension, inner: Handler) -> Handler:
    before = _hook(extension, "before")
    after = _hook(extension, "after")
    failed = _hook(extension, "failed")
    if failed is None:
        return _plain(before, after, inner)

    plain = _plain(before, after, inner)

    async def run(call: Call) -> Output:
        try:
            return await plain(call)
        except ToolgateError as error:
            recovered = await failed(call, error)
            if recovered is None:
                raise
            return recovered

    return run


def _plain(before: Any, after: Any, inner: Handler) -> Handler:
    if before is None and after is None:
        return inner

    async def run(call: Call) -> Output:
        if before is not None:
            answer = await before(call)
            if answer is not None:
                return answer
        output = await inner(call)
        if after is not None:
            return await after(call, output) or output
        return output

    return run


def _hook(extension: Extension, name: str) -> Callable[..., Awaitable[Output | None]] | None:
    """The hook as a coroutine function that raises only our errors, or `None`."""
    hook = cast("Callable[..., Any] | None", getattr(extension, name, None))
    if hook is None:
        return None
    label = type(extension).__name__

    async def guarded(*args: Any) -> Output | None:
        try:
            answer = hook(*args)
            if inspect.isawaitable(answer):
                answer = await answer
        except ToolgateError:
            raise
        except Exception as error:
            raise _extension_failed(label, name, error) from error
        if answer is not None and not isinstance(answer, Output):
            raise ExtensionFailed(
                f"The extension {label} returned a {type(answer).__name__} from {name}; "
                "return an Output or None.",
                extension=label,
                hook=name,
            )
        return answer

    return guarded


def _extension_failed(label: str, hook: str, error: Exception) -> ExtensionFailed:
    ran = "The tool had run before that." if hook == "after" else "The tool did not run."
    return ExtensionFailed(
        f"The extension {label} failed with {type(error).__name__} in {hook}. {ran}",
        extension=label,
        hook=hook,
    )
