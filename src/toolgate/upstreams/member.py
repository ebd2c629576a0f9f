"""One MCP server as the house keeps it: its connection, and what of it may not be called."""

from collections.abc import Awaitable, Callable, Mapping

from toolgate.settings.outward import McpServer
from toolgate.upstreams.upstream import Upstream


async def _nothing() -> None:
    """Nobody looks at its tools."""


class Member:
    """A server in use.

    `held` are tools that wait for an operator, by the server's own names, and why. Until what the
    server has was compared with what was agreed to, `is_checked` is false and `check` does so.
    """

    __slots__ = ("changes", "check", "held", "is_checked", "name", "settings", "upstream")

    def __init__(self, name: str, settings: McpServer, upstream: Upstream) -> None:
        self.name = name
        self.settings = settings
        self.upstream = upstream
        self.held: Mapping[str, str] = {}
        self.is_checked = False
        # How often it may have become another.
        self.changes = 0
        self.check: Callable[[], Awaitable[object]] = _nothing

    def doubt(self) -> None:
        """It may have other tools than those that were looked at."""
        self.is_checked = False
        self.changes += 1
