"""The port to what operators do about MCP servers; answers are plain JSON, as doors send it."""

from collections.abc import Mapping
from typing import Any, Protocol

from toolgate.settings.outward import McpServer
from toolgate.tenancy.tenancy import Tenancy

# What a server is called as a source of tools, before its name.
SOURCE = "mcp server "


class Review(Protocol):
    """Which servers there are, and what of them is agreed to. Changes are made by a tenancy that is
    signed.
    """

    def rows(self) -> list[dict[str, Any]]:
        """Every server, in use or not, by name."""
        ...

    async def tested(self, name: str) -> dict[str, Any]:
        """Ask a server now, and say how it is. Only one that is in use is ever reached."""
        ...

    async def shown(self, name: str) -> dict[str, Any]:
        """One server as it is, with the last lines that its program complained with."""
        ...

    async def examined(self) -> list[dict[str, Any]]:
        """Every server that is switched on, each asked by a connection for this alone. Nothing of
        it is agreed to.
        """
        ...

    async def waiting(self, name: str) -> list[dict[str, Any]]:
        """What of a server waits for an operator: why, and what is different from what was agreed
        to. All of it is written out, so that it can be looked at.
        """
        ...

    async def approve(self, by: Tenancy, name: str, tools: Mapping[str, str]) -> list[str]:
        """Agree to tools as they were shown, each by its fingerprint."""
        ...

    async def add(self, by: Tenancy, name: str, given: McpServer) -> None:
        """Use another server from now on."""
        ...

    async def remove(self, by: Tenancy, name: str) -> None:
        """Use a server no more that was added."""
        ...
