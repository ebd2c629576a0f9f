"""A house in memory whose MCP servers are in memory too."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from toolgate import Caller
from toolgate.net.guard import Guard
from toolgate.providers.mcp import McpProvider
from toolgate.runtime import Runtime
from toolgate.settings.outward import McpServer
from toolgate.sources.mcp.admission import Admission
from toolgate.sources.mcp.review import Desk
from toolgate.sources.mcp.servers import Servers
from toolgate.tenancy.directory import Directory
from toolgate.testing.directory import MemoryDirectory
from toolgate.testing.house import in_memory
from toolgate.upstreams.member import Member
from toolgate.upstreams.upstream import Upstream

ME = Caller(tenant="acme", agent="clerk")
PLAIN = McpServer(url="https://there.example")
TRUSTED = McpServer(url="https://there.example", trust="hints")
READS = {"readOnlyHint": True}


def tool(name: str, description: str = "It does something.", **more: Any) -> dict[str, Any]:
    """A definition as a server sends it."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": schema} | more


def text(said: str, **more: Any) -> dict[str, Any]:
    """A result of one text."""
    return {"content": [{"type": "text", "text": said}]} | more


def admission(root: Path) -> Admission:
    """What servers that are added may use here."""
    hosts = ("listed.example", "*.below.example")
    return Admission(("LISTED",), ("open",), hosts, root.joinpath, Guard(("127.0.0.1:7",)))


class Served(NamedTuple):
    """The house, its servers, and what operators do about them."""

    gate: Runtime
    servers: Servers
    desk: Desk

    def states(self) -> dict[str, str]:
        """Each tool of the catalog, and why it cannot be used."""
        snapshot = self.gate.catalog.current
        return {name: snapshot.unusable.get(name, "") for name in snapshot.specs}

    async def names(self) -> list[str]:
        """What an agent may call."""
        return [spec.name for spec in await self.gate.discover(ME)]

    def problem(self, server: str) -> str:
        """What the health of a server's source says."""
        found = {one.source: one.problem for one in self.gate.catalog.health()}
        return found[f"mcp server {server}"]

    async def approve(self, server: str, *tools: str) -> None:
        """Agree to what waits."""
        waits = {one["tool"]: one["fingerprint"] for one in await self.desk.waiting(server)}
        by = self.gate.tenancy.by("eva", "looked at it")
        wanted = tools or tuple(waits)
        await self.desk.approve(by, server, {one: waits[one] for one in wanted})


@asynccontextmanager
async def served(
    upstreams: Mapping[str, Upstream],
    settings: Mapping[str, McpServer] | McpServer = PLAIN,
    *functions: Callable[..., Any],
    directory: Directory | None = None,
    root: Path = Path(),
    asks: bool = True,
) -> AsyncGenerator[Served]:
    """These servers, under these settings (or all under the same); `asks`: whether they are asked
    before somebody wants to see one tried.
    """
    if isinstance(settings, McpServer):
        settings = dict.fromkeys(upstreams, settings)
    members: dict[str, Member] = {}
    providers = {"mcp": McpProvider(members)}

    async def make(name: str, _given: McpServer) -> Upstream:
        return upstreams[name]

    kept = directory or MemoryDirectory()
    async with in_memory(*functions, directory=kept, providers=providers) as gate:
        servers = Servers(
            settings,
            gate.catalog,
            gate.tenancy,
            members=members,
            make=make,
            path=lambda name: root / name,
            admission=admission(root),
            asks=asks,
        )
        await servers.follow()
        following = asyncio.create_task(servers.run())
        try:
            yield Served(gate, servers, Desk(servers, gate.tenancy))
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
            await servers.close()
