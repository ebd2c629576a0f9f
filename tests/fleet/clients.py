"""MCP clients that speak both revisions by hand, each request to the next node."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

from tests.fleet.conftest import Served
from tests.mcp.house import LEGACY, META, MODERN

BOTH = "application/json, text/event-stream"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TASKS: Mapping[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
Event = tuple[str, Any]


class Modern:
    """Of the newer revision: every request stands for itself."""

    def __init__(self, served: Served, http: aiohttp.ClientSession, **takes: Any) -> None:
        self._url = f"{served.fleet.balancer.url}/mcp"
        self._http = http
        self._takes = takes
        self.key = served.keys.ann

    def post(self, method: str, params: Mapping[str, Any]) -> Any:
        meta = META | {CAPABILITIES: self._takes} | params.get("_meta", {})
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Accept": BOTH,
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
            "Mcp-Name": str(params.get("name", params.get("taskId", ""))),
        }
        return self._http.post(self._url, data=orjson.dumps(body), headers=headers)

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        async with self.post(method, params or {}) as answer:
            return await answer.json()

    async def result(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        found = await self.ask(method, params)
        assert "result" in found, found
        return found["result"]

    async def call(self, tool: str, args: Mapping[str, Any] | None = None, **more: Any) -> Any:
        return await self.result("tools/call", {"name": tool, "arguments": args or {}, **more})

    async def get(self, made: Mapping[str, Any]) -> Any:
        return await self.result("tasks/get", {"taskId": made["taskId"]})


class Older:
    """Of the older one: a session, by its id."""

    def __init__(self, served: Served, http: aiohttp.ClientSession, key: str = "") -> None:
        self._url = f"{served.fleet.balancer.url}/mcp"
        self._http = http
        self.headers = {"Authorization": f"Bearer {key or served.keys.ann}", "Accept": BOTH}

    async def begin(self, capabilities: Mapping[str, Any] | None = None) -> "Older":
        params = {"protocolVersion": LEGACY, "capabilities": dict(capabilities or {})}
        async with self.post("initialize", params | {"clientInfo": {}}) as answer:
            assert answer.status == 200
            self.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        return self

    def post(self, method: str, params: Any = None, *, id_: Any = 1, accept: str = BOTH) -> Any:
        given: dict[str, Any] = params or {}
        body = {"jsonrpc": "2.0", "method": method, "params": given}
        return self.send(body | ({} if id_ is None else {"id": id_}), accept)

    def send(self, message: Mapping[str, Any], accept: str = BOTH) -> Any:
        headers = self.headers | {"Accept": accept}
        return self._http.post(self._url, data=orjson.dumps(message), headers=headers)

    async def ask(self, method: str, params: Any = None, **more: Any) -> Any:
        async with self.post(method, params, **more) as answer:
            return await answer.json()

    def get(self, last: str | None = None) -> Any:
        more = {} if last is None else {"Last-Event-ID": last}
        return self._http.get(self._url, headers=self.headers | more)

    def end(self) -> Any:
        return self._http.delete(self._url, headers=self.headers)


async def events(answer: aiohttp.ClientResponse) -> AsyncGenerator[Event]:
    """Id and message of each, as they come."""
    id_ = ""
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line.startswith("id: "):
            id_ = line.removeprefix("id: ")
        elif line.startswith("data: ") and line != "data: ":
            yield id_, orjson.loads(line.removeprefix("data: "))


@asynccontextmanager
async def line() -> AsyncGenerator[aiohttp.ClientSession]:
    """Connections that nobody keeps."""
    connector = aiohttp.TCPConnector(force_close=True)
    timeout = aiohttp.ClientTimeout(total=40)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield http
