"""Kinds of tools that plugins bring: each as its live version has it, closed once it is idle."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolgate.call import Call
from toolgate.errors import UnsupportedProvider
from toolgate.executor.provider import Choosy, Provider, keyless
from toolgate.providers.plugged import LOCAL, closed
from toolgate.spec.tool import ToolSpec


class Brought:
    """What runs them. It is handed providers, and hands nothing of the house to them."""

    def __init__(self, elsewhere: Callable[[str], bool] = lambda _kind: False) -> None:
        """`elsewhere`: whether the settings, a package or a program bring such a kind."""
        self._elsewhere = elsewhere
        self._kinds: dict[str, _Kind] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def find(self, kind: str) -> Provider | None:
        """What runs tools of this kind, where a plugin has brought it."""
        return self._kinds.get(kind)

    def holder(self, kind: str, plugin: str) -> str:
        """Who else has this kind, or nothing."""
        if self._elsewhere(kind):
            return "one that toolgate, the settings, a package or the program brings"
        own = self._kinds.get(kind)
        return f"one of {own.plugin}" if own is not None and own.plugin not in {"", plugin} else ""

    def take(self, plugin: str, made: Mapping[str, Provider]) -> None:
        """From now on these run the plugin's kinds; what runs already ends on what it began on."""
        for kind, own in self._kinds.items():
            if own.plugin == plugin and kind not in made:
                own.put("", None)
        for kind, provider in made.items():
            own = self._kinds.setdefault(kind, _Kind(kind, self._close))
            own.put(plugin, provider)

    async def close(self) -> None:
        """Nothing runs any more."""
        for own in self._kinds.values():
            own.put("", None)
        while self._closing:
            await asyncio.wait(self._closing)

    def _close(self, kind: str, provider: Provider) -> None:
        task = asyncio.get_running_loop().create_task(closed(kind, provider))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class _Held:
    """One version's provider, and how many calls are in it."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.calls = 0


class _Kind:
    """One kind. It stays the same while the plugin's versions come and go."""

    def __init__(self, kind: str, close: Callable[[str, Provider], None]) -> None:
        self.plugin = ""
        self._kind = kind
        self._close = close
        self._held: _Held | None = None

    def put(self, plugin: str, provider: Provider | None) -> None:
        self.plugin = plugin
        old = self._held
        if old is not None and old.provider is provider:
            return
        self._held = None if provider is None else _Held(provider)
        if old is not None and not old.calls:
            self._close(self._kind, old.provider)

    def unusable(self, spec: ToolSpec) -> str | None:
        """As it says itself; or why it cannot be asked."""
        if spec.origin.kind not in LOCAL:
            return (
                f"its definition is not from this machine, and provider {self._kind!r} is a "
                "plugin's, which runs tools of files here alone"
            )
        if self._held is None:
            return f"the plugin that brings provider {self._kind!r} is not live"
        try:
            return self._held.provider.unusable(spec)
        except Exception as error:  # noqa: BLE001  it is not ours, and can raise anything
            return f"provider {self._kind!r} could not look at it ({type(error).__name__})"

    def unkeyed(self, spec: ToolSpec) -> str | None:
        """As it says itself; one that says nothing hands no key on."""
        provider = None if self._held is None else self._held.provider
        try:
            return None if provider is None else keyless(provider, spec)
        except Exception as error:  # noqa: BLE001  it is not ours, and can raise anything
            return f"provider {self._kind!r} could not look at it ({type(error).__name__})"

    def unfit(self, spec: ToolSpec, args: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        """As it says itself, where it has rules of its own."""
        provider = None if self._held is None else self._held.provider
        return provider.unfit(spec, args) if isinstance(provider, Choosy) else ()

    async def run(self, call: Call) -> Any:
        """As the version runs it that is live when the call begins."""
        held = self._held
        if held is None:
            raise UnsupportedProvider(
                f"{call.spec.name!r} cannot run: the plugin that brings provider {self._kind!r} is "
                "not live. Nothing ran."
            )
        held.calls += 1
        try:
            return await held.provider.run(call)
        finally:
            held.calls -= 1
            if held is not self._held and not held.calls:
                self._close(self._kind, held.provider)
