"""Keeps an engine at the newest policy that is any good: files, and modules in the store."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from toolgate.engines.bundle import Bundle
from toolgate.engines.modules import Modules
from toolgate.errors import InvalidPolicy
from toolgate.gate.policy import Health, Policy
from toolgate.spec.tool import ToolSpec

log = logging.getLogger("toolgate.policy")


class Swappable(Policy, Protocol):
    """An engine that can be given another policy."""

    async def swap(self, bundle: Bundle) -> None:
        """Decide by another policy from now on."""
        ...

    def note(self, problem: str) -> None:
        """A policy could not be taken; the last good one stays."""
        ...


class Keeper:
    """The policy port over an engine, which it gives the policy that the world asks for.

    A module that was stored a moment ago counts from the next decision on: whoever asks for the
    revision is told the new one, and nothing is decided before the engine has it.
    """

    def __init__(
        self,
        modules: Modules,
        engine: Swappable,
        stored: Callable[[], Mapping[str, str]],
    ) -> None:
        """The engine has been given what `modules` says about the stored ones of this moment."""
        self._modules = modules
        self._engine = engine
        self._stored = stored
        self._taken = stored()
        self._stamp = modules.stamp()
        self._next: Bundle | None = None

    @property
    def revision(self) -> str:
        """Names the policy that the next decision is made by."""
        if self._stored() is not self._taken:
            self._load()
        return self._engine.revision if self._next is None else self._next.revision

    @property
    def reads(self) -> frozenset[str]:
        """Which parts of a single call it looks at."""
        return self._engine.reads if self._next is None else self._next.reads

    async def look(self) -> None:
        """See whether a file or a stored module has changed, and take it at once."""
        if self._stored() is not self._taken or self._modules.stamp() != self._stamp:
            self._load()
        await self._settle()

    async def allows(self, document: Mapping[str, Any]) -> bool:
        """Whether this `input` is allowed."""
        await self._settle()
        return await self._engine.allows(document)

    async def visible(
        self, document: Mapping[str, Any], tools: Sequence[ToolSpec]
    ) -> frozenset[str]:
        """Of these tools, those that may be seen."""
        await self._settle()
        return await self._engine.visible(document, tools)

    async def reasons(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Why this `input` is refused."""
        await self._settle()
        return await self._engine.reasons(document)

    def health(self) -> Health:
        """The engine's."""
        return self._engine.health()

    def _load(self) -> None:
        self._taken, self._stamp = self._stored(), self._modules.stamp()
        try:
            bundle = self._modules.load(self._taken)
        except InvalidPolicy as error:
            self._refused(error)
            return
        if bundle.revision != self._engine.revision or self._engine.health().problem:
            self._next = bundle

    async def _settle(self) -> None:
        while self._next is not None:
            bundle, self._next = self._next, None
            try:
                await self._engine.swap(bundle)
            except InvalidPolicy as error:
                self._refused(error)
            else:
                log.info("the policy is now %s", bundle.revision)

    def _refused(self, error: InvalidPolicy) -> None:
        log.warning("the policy stays as it was: %s", error.message)
        self._engine.note(error.message)
