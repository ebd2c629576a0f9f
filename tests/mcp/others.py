"""Other servers behind a house, in memory: what they have beside tools, and what stands for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from tests.mcp.house import House, opened
from toolgate.providers.mcp import McpProvider
from toolgate.settings.outward import McpServer
from toolgate.sources.mcp.overlay import Overlay
from toolgate.sources.mcp.specs import stand_in
from toolgate.testing.upstream import MemoryUpstream
from toolgate.upstreams.member import Member
from toolgate.upstreams.upstream import Json

PNG = "iVBORw0KGgo="
BOOK = "book://1"


def library(name: str = "library") -> MemoryUpstream:
    """A server with two books, a shelf of them, a prompt and what completes both."""
    made = MemoryUpstream(
        name,
        resources=[
            {"uri": BOOK, "name": "one", "mimeType": "text/plain", "_meta": {"shelf": 7}},
            {"uri": f"{name}://cover", "name": "cover", "icons": [{"src": "data:,"}]},
        ],
        resourceTemplates=[{"uriTemplate": name + "://{id}/{+rest}", "name": "shelf"}],
        prompts=[{"name": "review", "arguments": [{"name": "book", "required": True}]}],
    )

    def read(params: Json) -> Json:
        mine = {"from": name, "io.modelcontextprotocol/serverInfo": {"name": name}}
        held = {"uri": params["uri"], "blob": PNG, "_meta": {"page": 1}}
        return {"contents": [held], "_meta": mine}

    def get(params: Json) -> Json:
        said = {"type": "text", "text": f"{name}: {params['arguments']}"}
        return {"description": "A review", "messages": [{"role": "user", "content": said}]}

    def complete(params: Json) -> Json:
        return {"completion": {"values": [f"{name}: {params['ref'].get('name')}"], "total": 1}}

    made.answers |= {
        "resources/read": read,
        "prompts/get": get,
        "completion/complete": complete,
    }
    return made


class Behind:
    """A house, and the servers behind it."""

    def __init__(self, house: House, members: dict[str, Member]) -> None:
        self.house = house
        self._members = members

    def put(self, *servers: MemoryUpstream, prefix: str | None = None, **fields: Any) -> None:
        """These and no others; `fields` change what stands for them in the catalog."""
        settings = McpServer(url="http://127.0.0.1:9/mcp", prefix=prefix)
        self._members.clear()
        for one in servers:
            member = self._members[one.name] = Member(one.name, settings, one)
            member.is_checked = True
        gate = self.house.gate
        gate.upstreams = MappingProxyType({one.name: one for one in servers})
        specs = [
            stand_in(one.name, settings, kind, Overlay(), {})
            for one in servers
            for kind in ("resources", "prompts")
        ]
        gate.catalog.put("others", [msgspec.structs.replace(one, **fields) for one in specs])

    async def forbid(self, tool: str, *, tenant: str = "acme") -> None:
        """The tenant has this tool no longer."""
        await self.house.gate.tenancy.by("test").set_tenant_tool(tenant, tool, enabled=False)


@asynccontextmanager
async def behind(root: Path) -> AsyncGenerator[Behind]:
    """Nothing is behind it yet."""
    members: dict[str, Member] = {}
    async with opened(root, providers={"mcp": McpProvider(members)}) as house:
        yield Behind(house, members)
