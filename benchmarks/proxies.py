"""A thin MCP server, and what can stand in front of it: `… proxies NAME PORT [UPSTREAM]`.

The thin server is a bare protocol that answers what it is asked with as little as it can. The floor
is a bare ASGI function that hands the body on by aiohttp, and its answer back: it knows nothing of
MCP, asks nobody and records nothing.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from typing import Any

import aiohttp
import orjson
import uvicorn
import uvloop

from benchmarks.load import LOOPBACK, pinned
from benchmarks.wires import NEW, TOOL

Message = MutableMapping[str, Any]
_NUMBER = {"type": "integer"}
_LISTED: dict[str, Any] = {
    "tools": [
        {
            "name": TOOL,
            "description": "Add two numbers.",
            "inputSchema": {
                "type": "object",
                "properties": {"a": _NUMBER, "b": _NUMBER},
                "required": ["a", "b"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"sum": _NUMBER},
                "required": ["sum"],
            },
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }
    ],
    "resultType": "complete",
    "ttlMs": 3_600_000,
    "cacheScope": "public",
}
_DISCOVERED: dict[str, Any] = {
    "supportedVersions": [NEW],
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "thin", "version": "1"},
    "resultType": "complete",
    "ttlMs": 3_600_000,
    "cacheScope": "public",
}
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Thin(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self) -> None:
        self._got = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        got = self._got + data
        head, found, body = got.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        if not found or len(body) < int(length or b"0"):
            self._got = got
            return
        self._got = b""
        asked = orjson.loads(body)
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": _answered(asked)}
        raw = orjson.dumps(answer)
        self._transport.write(_HEAD % (len(raw), raw))


def _answered(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["method"] == "tools/call":
        given = asked["params"]["arguments"]
        data = {"sum": given["a"] + given["b"]}
        text = orjson.dumps(data).decode()
        return {
            "content": [{"type": "text", "text": text}],
            "structuredContent": data,
            "isError": False,
            "resultType": "complete",
        }
    return _DISCOVERED if asked["method"] == "server/discover" else _LISTED


async def thin(port: int) -> None:
    """Until it is ended."""
    server = await asyncio.get_running_loop().create_server(Thin, LOOPBACK, port)
    async with server:
        await server.serve_forever()


class Floor:
    """Every body goes on as it came, on a kept connection."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._http: aiohttp.ClientSession | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """One request."""
        assert scope["type"] == "http"
        if self._http is None:
            self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        wanted = (b"content-type", b"accept", b"mcp-protocol-version", b"mcp-method", b"mcp-name")
        head = {name.decode(): one.decode() for name, one in scope["headers"] if name in wanted}
        async with self._http.post(self._upstream, data=body, headers=head) as answer:
            raw = await answer.read()
            status = answer.status
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(raw))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": raw})


def fastmcp(upstream: str) -> Any:
    """FastMCP's proxy as its documentation makes it."""
    proxy = import_module("fastmcp.server").create_proxy(upstream)
    return proxy.http_app(stateless_http=True, json_response=True)


APPS: dict[str, Callable[[str], Any]] = {"floor": Floor, "fastmcp": fastmcp}


def main() -> None:
    name, port = sys.argv[1], int(sys.argv[2])
    if name == "thin":
        # Beside the generator: what is measured has its core for itself.
        pinned(1)
        uvloop.run(thin(port))
        return
    pinned(0)
    uvicorn.run(
        APPS[name](f"http://{LOOPBACK}:{sys.argv[3]}/mcp"),
        host=LOOPBACK,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off" if name == "floor" else "on",
        log_level="warning",
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
