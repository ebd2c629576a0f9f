"""What an operator says about MCP servers: which there are, and what is agreed to of theirs."""

from collections.abc import Mapping
from typing import Any

from toolgate.errors import InvalidRequest
from toolgate.settings.outward import McpServer
from toolgate.tenancy.changes import PinTools, SetServer
from toolgate.tenancy.hand import Hand
from toolgate.tenancy.names import nearest
from toolgate.tenancy.servers import Pin


class Serving(Hand):
    """Servers and pins."""

    async def add_server(self, name: str, settings: McpServer) -> None:
        """A server is used from now on, on every node. Its tools are pinned as they are first seen.

        `InvalidRequest` where there is another of that name.
        """
        async with self._stepping:
            await self._present.refresh()
            said = settings.model_dump(mode="json", exclude_defaults=True)
            if self.world.servers.added.get(name, said) != said:
                raise InvalidRequest(
                    f"There is another server {name!r} already; nothing was changed. Remove it "
                    "first, or use another name."
                )
            await self._put(SetServer(name, said))

    async def remove_server(self, name: str) -> None:
        """A server is gone, with what was agreed to of its tools."""
        async with self._stepping:
            await self._present.refresh()
            if name not in self.world.servers.added:
                raise InvalidRequest(
                    f"No server {name[:80]!r} was added; nothing was changed. One of the settings "
                    "goes when its section does." + nearest(name, self.world.servers.added)
                )
            await self._put(SetServer(name, None))

    async def pin_tools(self, server: str, pins: Mapping[str, Pin], *, first: bool = False) -> None:
        """Agree to these definitions; `first`: only if nobody has seen the server before.

        `InvalidRequest` where somebody has.
        """
        await self._put(PinTools(server, dict(pins), first))

    async def pinned(self, server: str) -> Mapping[str, Mapping[str, Any]]:
        """The definitions that are agreed to, by the server's own names."""
        return await self._directory.definitions(server)
