"""All specs at one moment. Whoever holds a snapshot sees one world until the call is over."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from toolgate.spec.tool import ToolSpec


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable catalog. `unusable` says why a listed spec cannot run here."""

    revision: int = 0
    specs: Mapping[str, ToolSpec] = MappingProxyType({})
    unusable: Mapping[str, str] = MappingProxyType({})
    # Short names, where one tool alone can be meant; they stand for the name of that tool.
    aliases: Mapping[str, str] = MappingProxyType({})

    def get(self, name: str) -> ToolSpec | None:
        """The spec of this name, in constant time."""
        return self.specs.get(name)

    def named(self, name: str) -> str:
        """The name of the tool that is meant: itself, or the one that it is short for."""
        return self.aliases.get(name, name)

    def meant(self, name: str) -> ToolSpec | None:
        """The spec of the tool that is meant."""
        return self.specs.get(self.named(name))
