"""Python functions: added by a program, or named in a tool file."""

import asyncio
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from toolgate.call import Call
from toolgate.errors import (
    InvalidOutput,
    InvalidSpecs,
    Overloaded,
    ToolError,
    ToolgateError,
    UnsupportedProvider,
)
from toolgate.executor.failure import execution_failed
from toolgate.executor.plain import begun, plain
from toolgate.executor.resilience.attended import Stopped, attended
from toolgate.executor.resilience.bulkhead import KEPT
from toolgate.executor.resilience.deadline import is_overdue, out_of_time, timed_out
from toolgate.executor.resilience.partial import produced, whole
from toolgate.providers.threads import NotBegun, Threads
from toolgate.spec.fit import carelessness, misfit
from toolgate.spec.function import Binding
from toolgate.spec.tool import ToolSpec

# A thread whose caller has gone is not to be had back: so many times the usual number may be.
_STUCK = 4


class PythonProvider:
    """Runs functions in this process. Those that block run in threads."""

    def __init__(
        self,
        *,
        concurrency: int = 64,
    ) -> None:
        """`concurrency`: how many calls run at a time; stuck threads come on top of them."""
        self._bindings: dict[str, Binding] = {}
        # As many of one tool as the bulkhead lets in.
        each = max(concurrency // 2, 1) + concurrency // KEPT
        self._threads = Threads(most=_STUCK * concurrency, each=each)

    def bind(self, binding: Binding) -> None:
        """Take a function that a program adds."""
        self._bindings[binding.spec.name] = binding

    def unusable(self, spec: ToolSpec) -> str | None:
        """Find the function a spec names, and keep it."""
        bound = self._bindings.get(spec.name)
        if bound is not None and bound.spec is spec:
            return None
        try:
            if bound is not None and bound.spec.config == spec.config:
                _check(spec, bound)
                bound.spec = spec
            else:
                self._bindings[spec.name] = self._find(spec)
        except _Missing as missing:
            return str(missing)
        return None

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """A function learns the key from its call alone."""
        if self._bindings[spec.name].injected is not None:
            return None
        return (
            "it has a downstream_key, but its function is not handed one: trying again could do it "
            "twice; let the function take call: toolgate.Call and hand call.downstream_key to the "
            "far side, or leave downstream_key out"
        )

    async def run(self, call: Call) -> Any:
        """Call the function with its own types; answer with plain JSON."""
        spec = call.grant.spec
        binding = self._bindings[spec.name]
        if binding.spec is not spec:
            binding = self._granted(spec, binding)
        arguments = binding.arguments(call.args)
        if binding.injected is not None:
            arguments[binding.injected] = call
        pieces: list[Any] = []
        try:
            if binding.is_async:
                work = binding.function(**arguments)
                # One that has nothing to wait for costs no more than a call.
                try:
                    waiting = work.send(None)
                except StopIteration as done:
                    result = done.value
                else:
                    result = await attended(work, waiting)
            elif binding.is_stream:
                await begun(_collected(call, binding.function(**arguments), pieces))
                return whole(pieces)
            else:
                result = await self._in_thread(spec.name, lambda: binding.function(**arguments))
        except (ToolError, GeneratorExit, Stopped):
            raise
        except asyncio.CancelledError as error:
            if pieces and is_overdue(error):
                raise timed_out(call, produced(pieces, spec.output_limit)) from None
            raise
        except _Ours as ours:
            raise ours.told(call) from None
        except BaseException as error:
            raise execution_failed(call, error) from error
        return plain(call, result)

    async def _in_thread(self, name: str, work: Callable[[], Any]) -> Any:
        try:
            result = await self._threads.run(work, of=name)
        except NotBegun as never:
            if never.error is None:
                raise _Ours(_crowded) from None
            if is_overdue(never.error):
                raise _Ours(out_of_time) from None
            raise never.error from None
        return await begun(_awaited(result)) if inspect.isawaitable(result) else result

    def close(self) -> None:
        """No more calls."""
        self._threads.close()

    def _granted(self, spec: ToolSpec, newer: Binding) -> Binding:
        """A call runs what it was granted, also when a reload has put another in its place."""
        if newer.spec.config == spec.config:
            return newer
        try:
            return self._find(spec)
        except _Missing as missing:
            raise UnsupportedProvider(f"{spec.name!r} cannot run any more: {missing}.") from None

    def _find(self, spec: ToolSpec) -> Binding:
        try:
            found = Binding(_imported(spec.config.value()), name=spec.name)
        except InvalidSpecs as error:
            raise _Missing(str(error.problems[0]).removesuffix(".")) from None
        _check(spec, found)
        found.spec = spec
        return found


class _Ours(Exception):
    """Said by us and not by the function, which can raise anything."""

    def __init__(self, told: Callable[[Call], ToolgateError]) -> None:
        super().__init__()
        self.told = told


def _crowded(call: Call) -> Overloaded:
    return Overloaded(
        f"Too many calls of {call.spec.name!r} run already, or have never ended. Nothing ran: try "
        "again later, or do without it.",
        retry_after=1,
    )


async def _collected(call: Call, stream: AsyncIterator[Any], pieces: list[Any]) -> None:
    on_piece = call.asked.on_piece
    async for given in stream:
        try:
            piece = plain(call, given)
        except InvalidOutput as error:
            raise _Ours(partial(_told, error)) from None
        pieces.append(piece)
        if on_piece is not None:
            on_piece(piece)


def _told(error: InvalidOutput, _call: Call) -> InvalidOutput:
    return error


async def _awaited(result: Any) -> Any:
    return await result


class _Missing(Exception):
    """There is no function to run, or not as it is defined."""


def _check(spec: ToolSpec, found: Binding) -> None:
    """A definition has the last word on a function, but never to say that it is harmless."""
    reason = carelessness(spec, found.own, found.declared) or misfit(spec.input_schema, found.takes)
    if reason is not None:
        raise _Missing(reason)


def _imported(config: Mapping[str, Any]) -> Callable[..., Any]:
    module, name = config.get("module"), config.get("function")
    if not isinstance(module, str) or not isinstance(name, str) or not module or not name:
        raise _Missing(
            "config names no module and function; write config: {module: MODULE, function: NAME}"
        )
    found: Any = None
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except SystemExit:
        raise _Missing(
            f"module {module!r} ends the program when it is imported (SystemExit); "
            "put that under if __name__ == '__main__'"
        ) from None
    except Exception as error:  # noqa: BLE001  a module can raise anything while it loads
        if found is not None and isinstance(error, AttributeError):
            raise _Missing(f"module {module!r} has no function {name!r}") from None
        raise _Missing(f"module {module!r} cannot be imported ({type(error).__name__})") from None
    if not callable(found):
        raise _Missing(f"{module}.{name} is not a function")
    return found
