"""The environment of clients that still need the first line of MCP's SDK."""

from pathlib import Path

from tests.servers.process import absent, services


def interpreter() -> Path:
    found = services() / "legacy" / "bin" / "python"
    if not found.exists():
        raise absent("legacy clients")
    return found
