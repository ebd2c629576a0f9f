"""What one version of a plugin offers: its tools as specs, bound to its code and its settings."""

import hashlib
import inspect
import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from toolgate.errors import InvalidSpecs
from toolgate.executor.provider import Provider
from toolgate.plugins import modules
from toolgate.plugins import setup as setups
from toolgate.plugins.manifest import FILE, Manifest
from toolgate.plugins.package import Package, Refused
from toolgate.plugins.setup import Setup
from toolgate.providers.plugged import mistake
from toolgate.spec.fit import carelessness, misfit
from toolgate.spec.function import Binding
from toolgate.spec.reader import read_tool, read_tools
from toolgate.spec.tool import Origin, ToolSpec

log = logging.getLogger("toolgate")
PROVIDER = "plugin"
HELD = "held"
# The argument that a function takes its settings by.
SETTINGS = "settings"
# Loads code, and makes the providers that it brings, by kind.
Load = Callable[[], Mapping[str, Provider]]


def specs_of(
    manifest: Manifest, setup: Setup, package: Package, name: str
) -> tuple[tuple[ToolSpec, ...], Load]:
    """The specs, and what loads the code that they name; `Refused` where the manifest cannot hold.

    `name`: what the plugin's code is called. Nothing of it runs before it is loaded.
    """
    setups.check(manifest, setup)
    places: list[tuple[str, str, str, dict[str, Any]]] = []
    given: list[dict[str, Any]] = []
    for tool in manifest.tools:
        own = str(tool.get("name"))
        module = _module(package, tool["module"], f"tool {own[:80]!r}")
        settings = setups.settings_of(manifest, setup, own)
        places.append((_attribute(own, len(places)), module, tool["function"], settings))
        given.append(_fields(tool, setup))
    said = orjson.dumps([place[3] for place in places], option=orjson.OPT_SORT_KEYS)
    bound = f"with_{hashlib.sha256(said).hexdigest()[:8]}"
    for fields, (attribute, *_rest) in zip(given, places, strict=True):
        fields["config"] = {"module": f"{name}.{bound}", "function": attribute}
    specs = tuple(_read(given, manifest.name))
    kinds = {
        kind: (_module(package, one.module, f"provider {kind!r}"), one.function)
        for kind, one in manifest.providers.items()
    }
    common = MappingProxyType(setups.settings_of(manifest, setup, "")) if kinds else None

    def load() -> Mapping[str, Provider]:
        made: dict[str, Any] = {}
        for spec, (attribute, module, function, settings) in zip(specs, places, strict=True):
            found = _function(name, module, function)
            made[attribute] = _bound(spec, found, settings)
            _fit(spec, made[attribute])
        modules.put(name, bound, made)
        return {kind: _provider(name, kind, *place, common) for kind, place in kinds.items()}

    return specs, load


def held(name: str, plugin: str, reason: str) -> ToolSpec:
    """A tool that waits: nothing of it is shown but its name."""
    fields = {"name": name, "provider": PROVIDER, "config": {HELD: reason}}
    return read_tool(fields, origin=Origin(PROVIDER, plugin))


def told(error: BaseException, package: Package) -> str:
    """What went wrong while code was loaded: what kind of error it is, and where in the plugin."""
    if isinstance(error, Refused):
        return str(error)
    # What is wrong is told in a line; the trace is for whoever writes the plugin.
    log.debug("plugin %s cannot be loaded", package.root.name, exc_info=error)
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"it cannot be loaded ({kind}, {Path(error.filename).name} line {error.lineno})"
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.isprintable():
        kind = f"{kind}: {error.name[:80]}"
    here, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(f"{package.root}/"):
            here = f", {file.removeprefix(f'{package.root}/')} line {trace.tb_lineno}"
        trace = trace.tb_next
    return f"it cannot be loaded ({kind}{here})"


def _attribute(tool: str, number: int) -> str:
    stem = re.sub(r"\W", "_", tool)
    return f"{stem}_{number}"


def _fields(tool: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    fields = {key: value for key, value in tool.items() if key not in {"module", "function"}}
    override = setup.tool_overrides.get(str(tool.get("name")))
    return {**fields, "provider": PROVIDER} | ({} if override is None else override.fields())


def _read(given: list[dict[str, Any]], plugin: str) -> list[ToolSpec]:
    try:
        return read_tools(
            given, file=FILE, origin=Origin(PROVIDER, plugin), line_of=lambda _path: None
        )
    except InvalidSpecs as error:
        problems: Collection[object] = error.problems
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise Refused(f"{str(next(iter(problems))).removesuffix('.')}{more}") from None


def _module(package: Package, module: str, whose: str) -> str:
    found = modules.relative(package, module)
    if found is None:
        raise Refused(
            f"{whose} names the module {module[:80]!r}, which is not in the plugin's folder"
        )
    return found


def _provider(package: str, kind: str, module: str, function: str, settings: Any) -> Provider:
    """Made out of the plugin's settings; it is handed nothing else."""
    made: Any = _function(package, module, function)(settings)
    wrong = mistake(kind, made)
    if wrong:
        raise Refused(wrong)
    return made


def _function(package: str, module: str, name: str) -> Any:
    found: Any = modules.imported(package, module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused(f"its module {module or '__init__'!r} has no function {name[:80]!r}")
        found = getattr(found, part)
    return found


def _bound(spec: ToolSpec, function: Any, settings: Mapping[str, Any]) -> Any:
    """With its settings, if it takes any that no caller gives."""
    try:
        takes = SETTINGS in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function
    if not takes or SETTINGS in spec.input_schema.value().get("properties", {}):
        return function
    return partial(function, settings=MappingProxyType(dict(settings)))


def _fit(spec: ToolSpec, function: Any) -> None:
    try:
        binding = Binding(function, name=spec.name)
    except InvalidSpecs as error:
        raise Refused(str(error.problems[0]).removesuffix(".")) from None
    reason = carelessness(spec, binding.own, binding.declared)
    reason = reason or misfit(spec.input_schema, binding.takes)
    if reason is not None:
        raise Refused(f"tool {spec.name!r} does not fit its function: {reason}")
