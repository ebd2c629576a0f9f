"""The port to what operators do about plugins; answers are plain JSON, as doors send it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.tenancy.tenancy import Tenancy

# What a plugin is called as a source of tools, before its name.
SOURCE = "plugin "


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the plugins changed: those that are live anew, and those that are not."""

    loaded: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    # Why each that is wrong is not live, or not anew.
    broken: Mapping[str, str] = MappingProxyType({})

    @property
    def count(self) -> int:
        """How many are live anew."""
        return len(self.loaded)

    def fields(self) -> dict[str, Any]:
        """As doors send it."""
        return {
            "loaded": list(self.loaded),
            "waiting": list(self.waiting),
            "gone": list(self.gone),
            "broken": dict(self.broken),
        }


class Plugins(Protocol):
    """Which plugins there are, and what of them is agreed to."""

    def rows(self) -> list[dict[str, Any]]:
        """Every plugin, live or not, by name."""
        ...

    def left(self) -> list[str]:
        """Those that are not live here, though some version of them was agreed to."""
        ...

    async def shown(self, name: str) -> dict[str, Any]:
        """One plugin as it is: its tools, and what of it waits, with what is different."""
        ...

    async def approve(self, by: Tenancy, name: str, fingerprint: str) -> dict[str, Any]:
        """Agree to a plugin as it was shown. Its code is loaded then."""
        ...

    async def check_for_changes(self) -> list[str]:
        """The plugins whose files or settings are others than when they were last looked at."""
        ...

    async def reload_changed(self) -> Reloaded:
        """Look at all of them, and load what has changed and is agreed to."""
        ...


class NoPlugins:
    """A house that was put together without."""

    def rows(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def left(self) -> list[str]:
        """None."""
        return []

    async def shown(self, name: str) -> dict[str, Any]:
        """None."""
        raise _none(name)

    async def approve(self, by: Tenancy, name: str, fingerprint: str) -> dict[str, Any]:  # noqa: ARG002
        """None."""
        raise _none(name)

    async def check_for_changes(self) -> list[str]:
        """None."""
        return []

    async def reload_changed(self) -> Reloaded:
        """None."""
        return Reloaded()


def _none(name: str) -> InvalidRequest:
    return InvalidRequest(f"There is no plugin {name[:80]!r}.")
