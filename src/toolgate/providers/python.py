"""Python functions: added by a program, named in a tool file, or built in."""

import importlib
import inspect
import logging
import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from toolgate.call import Call
from toolgate.errors import (
    ExecutionFailed,
    InvalidOutput,
    InvalidSpecs,
    ToolError,
    UnsupportedProvider,
)
from toolgate.providers.threads import Threads
from toolgate.spec.function import Binding
from toolgate.spec.tool import ToolSpec

log = logging.getLogger("toolgate.tools")
_PLAIN = frozenset({bool, type(None)})


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
        if bound is not None and (bound.spec is spec or bound.spec.config == spec.config):
            bound.spec = spec
            return None
        try:
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
        except (Exception, SystemExit) as error:
            raise _failed(call, error) from error
        return result if type(result) in _PLAIN else _plain(call, result)

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
            raise _Missing(str(error.problems[0])) from None
        except (TypeError, ValueError):
            raise _Missing("its function does not say which arguments it takes") from None
        found.spec = spec
        return found


class _Missing(Exception):
    """There is no function to run."""


def _imported(config: Mapping[str, Any]) -> Callable[..., Any]:
    module, name = config.get("module"), config.get("function")
    if not isinstance(module, str) or not isinstance(name, str) or not module or not name:
        raise _Missing("config names no module and function")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise _Missing(f"module {module!r} has no function {name!r}") from None
    except Exception as error:  # noqa: BLE001  a module can raise anything while it loads
        raise _Missing(f"module {module!r} cannot be imported ({type(error).__name__})") from None
    if not callable(found):
        raise _Missing(f"{module}.{name} is not a function")
    return found


def _failed(call: Call, error: BaseException) -> ExecutionFailed:
    """The exception's own text can hold anything, secrets too: only its kind is told."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name}, line {frames[-1].lineno}" if frames else "unknown place"
    log.warning(
        "tool %s failed with %s in %s (call %s)",
        call.spec.name,
        type(error).__name__,
        place,
        call.id,
    )
    return ExecutionFailed(
        f"{call.spec.name!r} failed with {type(error).__name__}. "
        "Raise toolgate.ToolError in the tool to tell callers more."
    )


def _plain(call: Call, result: Any) -> Any:
    """Through JSON and back: every door gives the same data, and nobody can change it later."""
    try:
        return orjson.loads(orjson.dumps(result, default=_default))
    except (TypeError, ValueError) as error:
        raise InvalidOutput(
            f"{call.spec.name!r} ran, but what it returned is not JSON ({error})."
        ) from None


def _default(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no JSON form")
