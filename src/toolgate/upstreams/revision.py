"""The revisions of MCP as a client speaks them, and who we say we are."""

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
# What an older server may choose instead: they differ in nothing that is used here.
HANDSHAKE = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", LEGACY})

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
# What a caller's own `_meta` must not say in our place.
OURS = frozenset({VERSION, CAPABILITIES, CLIENT, "progressToken", SUBSCRIPTION})

INFO: Mapping[str, Any] = {"name": "toolgate", "title": "toolgate", "version": version("toolgate")}

# What a request names, and a header repeats.
NAMED: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}


_ASKS: Mapping[str, Mapping[str, Any]] = {
    "elicitation": {"form": {"applyDefaults": True}},
    "sampling": {},
    "roots": {},
}
# What can be asked of a client at all.
ASKS = tuple(_ASKS)


def capabilities(asks: Collection[str]) -> dict[str, Any]:
    """What a server can ask of us: what an operator allows, else nothing."""
    return {name: how for name, how in _ASKS.items() if name in asks}
