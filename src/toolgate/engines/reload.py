"""Operators' files, looked at again: what is good is taken, what is broken leaves the last good."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from toolgate.engines.bundle import Bundle
from toolgate.engines.modules import Modules
from toolgate.errors import InvalidPolicy


class Engine(Protocol):
    """What takes a policy."""

    @property
    def revision(self) -> str: ...

    async def swap(self, bundle: Bundle) -> None: ...

    def note(self, problem: str) -> None: ...


class Reloader:
    """One folder, the modules in the store, and the engine that decides by them."""

    def __init__(self, modules: Modules, engine: Engine) -> None:
        self._modules = modules
        self._engine = engine
        self._seen: object = None
        # A second look waits for the first.
        self._lock = asyncio.Lock()

    async def refresh(self, stored: Mapping[str, str]) -> bool:
        """Look again; whether another policy is in force. Never raises for a broken one."""
        async with self._lock:
            now = (await asyncio.to_thread(self._modules.stamp), dict(stored))
            if now == self._seen:
                return False
            self._seen = now
            try:
                bundle = await asyncio.to_thread(self._modules.load, stored)
                changed = bundle.revision != self._engine.revision
                if changed:
                    await self._engine.swap(bundle)
            except InvalidPolicy as error:
                self._engine.note(f"The last good policy stays. {error.message}")
                return False
            self._engine.note("")
            return changed
