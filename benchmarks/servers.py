"""The ungoverned servers beside ours, each in a process of its own: `… servers NAME PORT`.

The floor is a bare function behind the same HTTP server that toolgate stands behind: it reads the
body, parses it, adds, and writes an answer of the same form. None of them asks who calls, decides,
limits or records.
"""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from typing import Any

import orjson
import uvicorn

from benchmarks.load import LOOPBACK, pinned

Message = MutableMapping[str, Any]
_HEADERS = [(b"content-type", b"application/json")]


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


async def floor(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """What HTTP and JSON cost, and nothing else."""
    assert scope["type"] == "http"
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    asked = orjson.loads(body)
    data = await add(**asked["params"]["arguments"])
    text = orjson.dumps(data).decode()
    result = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": data,
        "isError": False,
        "resultType": "complete",
    }
    answer = orjson.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    headers = [*_HEADERS, (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def sdk() -> Any:
    """The official SDK's server, stateless."""
    server = import_module("mcp.server.mcpserver").MCPServer("bench", log_level="WARNING")
    server.tool()(add)
    return server.streamable_http_app(stateless_http=True, json_response=True)


def fastmcp() -> Any:
    """FastMCP's server, stateless."""
    server = import_module("fastmcp").FastMCP("bench")
    server.tool(add)
    return server.http_app(stateless_http=True, json_response=True)


APPS: dict[str, Callable[[], Any]] = {"floor": lambda: floor, "sdk": sdk, "fastmcp": fastmcp}


def main() -> None:
    name, port = sys.argv[1:]
    pinned(0)
    uvicorn.run(
        APPS[name](),
        host=LOOPBACK,
        port=int(port),
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
