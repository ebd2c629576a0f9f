"""The two revisions of MCP that are spoken here, and how one of them is agreed on."""

from toolgate.protocol import (
    CAPABILITIES,
    CLIENT,
    HANDSHAKE,
    INFO,
    LEGACY,
    LOG_LEVEL,
    MODERN,
    SERVER,
    SUBSCRIPTION,
    VERSION,
)

__all__ = [
    "CAPABILITIES",
    "CLIENT",
    "HANDSHAKE",
    "INFO",
    "INSTRUCTIONS",
    "LEGACY",
    "LOG_LEVEL",
    "MODERN",
    "SERVER",
    "SUBSCRIPTION",
    "SUPPORTED",
    "UNSAID",
    "VERSION",
    "agreed",
]

# What is assumed of an older client that does not say.
UNSAID = "2025-03-26"
SUPPORTED = (MODERN,)

INSTRUCTIONS = (
    "Every tool that is listed may be called. A side effect runs once for each turn: send the same "
    "toolgate/turnGroup in _meta when you try again."
)


def agreed(offered: object) -> str:
    """What an `initialize` gets: the revision that it offers, or the newest of the older ones."""
    return offered if isinstance(offered, str) and offered in HANDSHAKE else LEGACY
