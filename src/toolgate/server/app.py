"""The HTTP door. The wire becomes a caller, a tool name and arguments; it knows nothing else."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import orjson

from toolgate.errors import ToolgateError
from toolgate.runtime import Runtime
from toolgate.server.auth import authenticate, caller_of
from toolgate.server.body import Receive, read_object
from toolgate.server.calls import read_call
from toolgate.server.host import host_check
from toolgate.server.problems import problem
from toolgate.server.request import Request
from toolgate.server.tools import explain_tool, list_tools, show_tool
from toolgate.settings import Server

log = logging.getLogger("toolgate.server")
Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Answer = tuple[int, bytes]
_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_CALL = "/v1/call"
_TOOLS = "/v1/tools/"


class App:
    """A bare ASGI application."""

    def __init__(self, gate: Runtime, server: Server) -> None:
        self._gate = gate
        self._is_ours = host_check(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever happens, the caller gets a problem and never a trace."""
        if scope["type"] != "http":
            raise RuntimeError(f"this server does not speak {scope['type']}")
        kind = b"application/problem+json"
        try:
            status, body = await self._answer(scope, receive)
            kind = b"application/json" if status < 400 else kind
        except ToolgateError as error:
            status, body = problem(error)
        except Exception:
            log.exception("a request failed")
            status, body = problem(ToolgateError("Something went wrong here; it is in the log."))
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *_HEADERS]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        elif status == 405:
            headers.append((b"allow", b"POST" if scope["path"] == _CALL else b"GET"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        host = authorization = None
        for name, value in scope["headers"]:
            # Of two headers where one belongs, neither counts: which one a proxy saw is unknown.
            if name == b"authorization":
                authorization = value if authorization is None else b""
            elif name == b"host":
                host = value if host is None else b""
        if not self._is_ours(host):
            return 421, _plain("misdirected_request", "This server does not go by that name.", 421)
        method, path = scope["method"], scope["path"]
        if path in {"/healthz", "/readyz"}:
            return self._health(path)
        key = authenticate(authorization, self._gate.tenancy.world)
        caller = caller_of(key)
        if path == _CALL:
            if method != "POST":
                return _not_allowed("POST")
            tool, args, turn = read_call(await read_object(receive))
            output = await self._gate.call(tool, args, caller=caller, turn=turn)
            return 200, orjson.dumps(output.to_machine())
        if method != "GET":
            return _not_allowed("GET")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        found = await _read(Request(self._gate, key, caller, query), path)
        if found is None:
            return 404, _plain("not_found", "There is nothing here. See /v1/tools.", 404)
        return 200, orjson.dumps(found)

    def _health(self, path: str) -> Answer:
        """Alive is alive; ready means that every source has what it should."""
        if path == "/healthz":
            return 200, b'{"status":"ok"}'
        sick = [one.source for one in self._gate.catalog.health() if not one.ok]
        return (503 if sick else 200), orjson.dumps(
            {"status": "degraded" if sick else "ready", "unhealthy_sources": len(sick)}
        )


async def _read(request: Request, path: str) -> Any:
    if path == "/v1/tools":
        return await list_tools(request)
    if path.startswith(_TOOLS):
        name = path.removeprefix(_TOOLS)
        if name.endswith("/explain"):
            return await explain_tool(request, name.removesuffix("/explain"))
        if name:
            return await show_tool(request, name)
    return None


def _not_allowed(method: str) -> Answer:
    return 405, _plain("method_not_allowed", f"Use {method} here.", 405)


def _plain(code: str, detail: str, status: int) -> bytes:
    return orjson.dumps(
        {
            "type": f"urn:toolgate:error:{code}",
            "title": code.replace("_", " "),
            "status": status,
            "code": code,
            "detail": detail,
        }
    )
