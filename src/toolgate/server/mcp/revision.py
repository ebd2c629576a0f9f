"""The two revisions of MCP that are spoken here, and how one of them is agreed on."""

from collections.abc import Mapping
from typing import Any

from toolgate import __version__

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
# What an `initialize` can agree on: they differ from the newest of them in nothing that is used.
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
# What is assumed of an older client that does not say.
UNSAID = "2025-03-26"
SUPPORTED = (MODERN,)

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

INFO: Mapping[str, Any] = {
    "name": "toolgate",
    "title": "toolgate",
    "version": __version__,
}
INSTRUCTIONS = (
    "Every tool that is listed may be called. A side effect runs once for each turn: send the same "
    "toolgate/turnGroup in _meta when you try again."
)


def agreed(offered: object) -> str:
    """What an `initialize` gets: the revision that it offers, or the newest of the older ones."""
    return offered if isinstance(offered, str) and offered in HANDSHAKE else LEGACY
