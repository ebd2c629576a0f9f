"""MCP servers that operators add while the house is open, and what they agree to of any server."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

# A server's own name of a tool, and the fingerprint that was agreed to.
Pins = Mapping[str, str]


class Pin(msgspec.Struct, frozen=True):
    """A definition that is agreed to, and its fingerprint."""

    fingerprint: str
    definition: Mapping[str, Any]


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """What the store has on record of servers. One whose tools were never seen has no pins."""

    added: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    pins: Mapping[str, Pins] = MappingProxyType({})


NONE = Servers()
