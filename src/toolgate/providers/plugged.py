"""Providers of other packages: found by name, loaded when the first tool asks, broken alone."""

import importlib
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from toolgate.call import Call
from toolgate.errors import UnsupportedProvider
from toolgate.executor.provider import KINDS, Choosy, Provider, keyless
from toolgate.settings.outward import CustomProvider
from toolgate.spec.tool import ToolSpec

log = logging.getLogger("toolgate")
GROUP = "toolgate.providers"
# What toolgate itself brings; no package takes their place.
BUILT_IN = KINDS
# Definitions that come from this machine, and so from its operator.
LOCAL = frozenset({"file", "python"})
Factory = Callable[[Mapping[str, str]], Provider]


class PluggedProviders:
    """Every kind that a package offers under `toolgate.providers`, or that the settings name."""

    def __init__(
        self, named: Mapping[str, CustomProvider], environ: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._named = named
        self._environ = environ
        self._offered: Mapping[str, Any] | None = None
        self._found: dict[str, _Plugged] = {}

    def find(self, kind: str) -> Provider | None:
        """What runs tools of this kind, where there is something of this name."""
        if kind in BUILT_IN:
            return None
        if kind not in self._found:
            load = self._way_to(kind)
            if load is None:
                return None
            own = self._named.get(kind)
            self._found[kind] = _Plugged(
                kind,
                load,
                self._settings(own),
                is_named=own is not None,
                unset=self._unset(own),
            )
        return self._found[kind]

    async def close(self) -> None:
        """Close those that were loaded and can be closed."""
        for provider in self._found.values():
            await provider.close()

    def _way_to(self, kind: str) -> Callable[[], Any] | None:
        own = self._named.get(kind)
        if own is not None and own.use:
            return lambda: _imported(own.use)
        if self._offered is None:
            from importlib.metadata import entry_points  # noqa: PLC0415  it looks at every package

            self._offered = {point.name: point for point in entry_points(group=GROUP)}
        point = self._offered.get(kind)
        return None if point is None else point.load

    def _settings(self, own: CustomProvider | None) -> Mapping[str, str]:
        if own is None:
            return MappingProxyType({})
        secrets = {key: self._environ.get(name, "") for key, name in own.settings_env.items()}
        return MappingProxyType({**own.settings, **secrets})

    def _unset(self, own: CustomProvider | None) -> str:
        """The variables that it is to be handed and that are not there, with their keys."""
        if own is None:
            return ""
        named = own.settings_env.items()
        return ", ".join(f"{one} (for {key})" for key, one in named if one not in self._environ)


class _Plugged:
    """One of them. What it raises while it is loaded or looks at a tool stays with its tools."""

    def __init__(
        self,
        kind: str,
        load: Callable[[], Any],
        settings: Mapping[str, str],
        *,
        is_named: bool,
        unset: str,
    ) -> None:
        self._kind = kind
        self._load = load
        self._settings = settings
        self._is_named = is_named
        self._provider: Provider | None = None
        self._broken = ""
        if unset:
            self._broken = f"provider {kind!r} needs a variable that is not set: {unset}"

    def unusable(self, spec: ToolSpec) -> str | None:
        """As it says itself; or why it cannot be asked."""
        if not self._is_named and spec.origin.kind not in LOCAL:
            return (
                f"its definition is not from this machine, and the settings do not name provider "
                f"{self._kind!r}; write [providers.custom.{self._kind}] to let it run such tools"
            )
        provider = self._loaded()
        if provider is None:
            return self._broken
        try:
            return provider.unusable(spec)
        except Exception as error:  # noqa: BLE001  it is not ours, and can raise anything
            return f"provider {self._kind!r} could not look at it ({type(error).__name__})"

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """As it says itself; one that says nothing hands no key on."""
        provider = self._loaded()
        try:
            return None if provider is None else keyless(provider, spec)
        except Exception as error:  # noqa: BLE001  it is not ours, and can raise anything
            return f"provider {self._kind!r} could not look at it ({type(error).__name__})"

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """As it says itself, where it has rules of its own."""
        provider = self._loaded()
        return provider.unfit(spec, args) if isinstance(provider, Choosy) else ()

    async def run(self, call: Call) -> Any:
        """As it runs it."""
        provider = self._loaded()
        if provider is None:
            raise UnsupportedProvider(f"{call.spec.name!r} cannot run: {self._broken}.")
        return await provider.run(call)

    async def close(self) -> None:
        await closed(self._kind, self._provider)

    def _loaded(self) -> Provider | None:
        if self._provider is not None or self._broken:
            return self._provider
        try:
            made: Any = cast("Factory", self._load())(self._settings)
        except (Exception, SystemExit) as error:
            log.warning("provider %s cannot be loaded", self._kind, exc_info=True)
            self._broken = f"provider {self._kind!r} cannot be loaded ({type(error).__name__})"
            return None
        self._broken = mistake(self._kind, made)
        self._provider = None if self._broken else made
        return self._provider


def mistake(kind: str, made: Any) -> str:
    """What is wrong with a provider that somebody else made, or nothing."""
    run = getattr(made, "run", None)
    if not callable(getattr(made, "unusable", None)) or not inspect.iscoroutinefunction(run):
        return f"provider {kind!r} has no unusable(spec) and async run(call)"
    if inspect.iscoroutinefunction(getattr(made, "unfit", None)):
        return f"provider {kind!r} has an async unfit; it must not wait"
    return ""


async def closed(kind: str, provider: Any) -> None:
    """Close it, if it can be; what it raises stays with it."""
    close = getattr(provider, "close", None)
    if not callable(close):
        return
    try:
        closing: object = close()
        if inspect.isawaitable(closing):
            await closing
    except Exception:
        log.warning("provider %s could not be closed", kind, exc_info=True)


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
