"""Python functions: added by a program, named in a tool file, or built in."""

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from toolgate.call import Call
from toolgate.errors import InvalidOutput, InvalidSpecs, ToolError, UnsupportedProvider
from toolgate.executor.failure import execution_failed
from toolgate.providers.threads import Threads
from toolgate.spec.document import NON_FINITE, has_non_finite
from toolgate.spec.fit import carelessness, misfit
from toolgate.spec.function import Binding
from toolgate.spec.tool import ToolSpec

_ALREADY_JSON = frozenset({bool, type(None)})
# Nobody can change them later; but not each of them can be written.
_UNCHANGEABLE = frozenset({int, str})


class PythonProvider:
    """Runs functions in this process. Those that block run in threads."""

    def __init__(self, builtin: Mapping[str, Callable[..., Any]] = MappingProxyType({})) -> None:
        self._builtin = builtin
        self._bindings: dict[str, Binding] = {}
        self._threads = Threads()

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

    async def run(self, call: Call) -> Any:
        """Call the function with its own types; answer with plain JSON."""
        spec = call.grant.spec
        binding = self._bindings[spec.name]
        if binding.spec is not spec:
            binding = self._granted(spec, binding)
        arguments = binding.arguments(call.args)
        if binding.injected is not None:
            arguments[binding.injected] = call
        try:
            if binding.is_async:
                result = await binding.function(**arguments)
            else:
                result = await self._threads.run(lambda: binding.function(**arguments))
                if inspect.isawaitable(result):
                    result = await result
        except ToolError:
            raise
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            raise execution_failed(call, error) from error
        return result if type(result) in _ALREADY_JSON else _as_json(call, result)

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
        config = spec.config.value()
        if "builtin" in config:
            function = self._builtin.get(config["builtin"])
            if function is None:
                raise _Missing("its implementation is not part of this version")
        else:
            function = _imported(config)
        try:
            found = Binding(function, name=spec.name)
        except InvalidSpecs as error:
            raise _Missing(str(error.problems[0]).removesuffix(".")) from None
        _check(spec, found)
        found.spec = spec
        return found


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


def _as_json(call: Call, result: Any) -> Any:
    """Through JSON and back: every door gives the same data, and nobody can change it later."""
    try:
        raw = orjson.dumps(result, default=_default)
    except (TypeError, ValueError) as error:
        raise _not_json(call, str(error)) from None
    if type(result) in _UNCHANGEABLE:
        return result
    if raw.find(b"null") >= 0 and has_non_finite(result):
        raise _not_json(call, NON_FINITE)
    return orjson.loads(raw)


def _not_json(call: Call, reason: str) -> InvalidOutput:
    return InvalidOutput(f"{call.spec.name!r} ran, but what it returned is not JSON ({reason}).")


def _default(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no JSON form")
