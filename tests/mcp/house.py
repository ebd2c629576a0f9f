"""A house with its doors open on loopback, and clients of both revisions that come to it."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import httpx2
import orjson
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from toolgate import Toolgate
from toolgate.executor.provider import Provider
from toolgate.server.doors import doors
from toolgate.server.limits import LimitedProtocol
from toolgate.settings.settings import Mcp, Settings
from toolgate.tenancy.capsule import Mode
from toolgate.tenancy.keys import Role

MODES = ("auto", "legacy")
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_NAMED = {
    "tools/call": "name",
    "resources/read": "uri",
    "prompts/get": "name",
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}


class House(NamedTuple):
    """What a test holds."""

    gate: Toolgate
    url: str
    # Of tenant acme: an agent that acts for ann, and another one for nobody; and one of globex.
    ann: str
    plain: str
    other: str

    @asynccontextmanager
    async def client(
        self, mode: str = "auto", *, key: str = "", **callbacks: Any
    ) -> AsyncGenerator[Client]:
        """The official one."""
        headers = {"Authorization": f"Bearer {key or self.ann}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            line = streamable_http_client(self.url, http_client=http)
            async with Client(line, mode=mode, **callbacks) as client:
                yield client

    async def post(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        id_: Any = 1,
    ) -> tuple[int, Any]:
        """One request of the newer revision, as it stands on the wire."""
        given = dict(params or {})
        body = {
            "jsonrpc": "2.0",
            "id": id_,
            "method": method,
            "params": given | {"_meta": META | dict(meta or {})},
        }
        sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in _NAMED:
            sent["Mcp-Name"] = str(given.get(_NAMED[method], ""))
        return await self.send(orjson.dumps(body), key=key, headers=sent | dict(headers or {}))

    async def send(
        self, raw: bytes, *, key: str = "", headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Bytes, and what comes back."""
        sent = {
            "Authorization": f"Bearer {key or self.ann}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        async with (
            aiohttp.ClientSession() as http,
            http.post(self.url, data=raw, headers=sent | dict(headers or {})) as answer,
        ):
            text = await answer.text()
            return answer.status, orjson.loads(text) if text else None


@asynccontextmanager
async def opened(
    root: Path,
    *,
    providers: Mapping[str, Provider] | None = None,
    settings: Settings | None = None,
    **mcp: Any,
) -> AsyncGenerator[House]:
    """A house of two tenants."""
    settings = settings or Settings(root=root, mcp=Mcp(**mcp))
    opening = Toolgate.open(settings, providers=providers)
    async with opening as gate, doors(gate, settings) as app:
        tenancy = gate.tenancy.by("test")
        for tenant, agent in (("acme", "billing"), ("acme", "robot"), ("globex", "billing")):
            await tenancy.add_tenant(tenant)
            await tenancy.set_agent(tenant, agent, Mode.ALL)
        ann = await tenancy.add_key(Role.AGENT, tenant="acme", agent="billing", user="ann")
        plain = await tenancy.add_key(Role.AGENT, tenant="acme", agent="robot")
        other = await tenancy.add_key(Role.AGENT, tenant="globex", agent="billing", user="ann")
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="none",
                http=LimitedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        try:
            yield House(gate, url, ann.secret, plain.secret, other.secret)
        finally:
            server.should_exit = server.force_exit = True
            await serving
            # Nobody waits until clients have let go of their lines.
            for line in list(server.server_state.connections):
                line.transport.abort()
            await asyncio.sleep(0)
            listening.close()
