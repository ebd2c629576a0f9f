"""The HTTP door. The wire becomes a caller, a tool name and arguments; it knows nothing else."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
import orjson

from toolgate.call import NO_CONTEXT
from toolgate.errors import PermissionDenied, ToolgateError
from toolgate.executor.bare import bare
from toolgate.runtime import Runtime
from toolgate.server import approvals
from toolgate.server.admin.routes import PREFIX, administer, allowed_methods
from toolgate.server.auth import Door, caller_of
from toolgate.server.batches import run_batch, run_chain
from toolgate.server.body import Receive, SlowBodyError, read_object
from toolgate.server.calls import no_key, read_call, run_call
from toolgate.server.hangup import listening
from toolgate.server.host import host_check, is_loopback
from toolgate.server.ledger import list_calls, run_undo, show_call
from toolgate.server.messages import run_message
from toolgate.server.problems import problem, retry_after, wire_problem
from toolgate.server.request import Request
from toolgate.server.tools import explain_tool, list_tools, show_tool
from toolgate.settings.settings import Server
from toolgate.telemetry.place import kind_of, place_of
from toolgate.telemetry.prometheus import CONTENT_TYPE
from toolgate.tenancy.keys import Role

log = logging.getLogger("toolgate.server")
Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Answer = tuple[int, bytes]
_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_CALL = "/v1/call"
METRICS = "/metrics"
# What a request can say about the trace that it belongs to.
_TRACE = (b"traceparent", b"tracestate")
_TOOLS = "/v1/tools/"
_CALLS = "/v1/calls/"
_SEVERAL = {
    "/v1/batch": run_batch,
    "/v1/chain": run_chain,
    "/v1/messages": run_message,
    "/v1/undo": run_undo,
}

# Taking back is once by itself, whatever key comes with it.
_ONCE = frozenset({"/v1/undo"})


class App:
    """A bare ASGI application."""

    def __init__(self, gate: Runtime, server: Server) -> None:
        self._gate = gate
        self._door = Door(lambda: gate.tenancy.world)
        self._is_ours = host_check(server)
        # With a public address there is a proxy on this machine, and it lets everybody in.
        self._is_local = is_loopback(server.host) and not server.public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever happens, the caller gets a problem and never a trace."""
        if scope["type"] != "http":
            raise RuntimeError(f"this server does not speak {scope['type']}")
        kind = b"application/problem+json"
        wait = None
        try:
            status, body = await self._answer(scope, receive)
            if status < 400:
                kind = CONTENT_TYPE if scope["path"] == METRICS else b"application/json"
        except ToolgateError as error:
            status, body = problem(error)
            wait = retry_after(error)
        # Signals go to the loop, so an exit or an interrupt that arrives here was a tool's.
        except BaseException as error:
            if _is_the_end(error):
                raise
            # Its own words, and a trace, can hold anything: only its kind and place are kept.
            log.error("a request failed with %s in %s", kind_of(error), place_of(error))  # noqa: TRY400
            status, body = problem(ToolgateError("Something went wrong here; it is in the log."))
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *_HEADERS]
        if wait is not None:
            headers.append((b"retry-after", wait))
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        elif status == 408:
            # Nobody will read what still comes.
            headers.append((b"connection", b"close"))
        elif status == 405:
            headers.append((b"allow", _allowed(scope)))
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
            return wire_problem("misdirected_request")
        path = scope["path"]
        if path in {"/healthz", "/readyz"}:
            return self._health(path)
        if path == METRICS:
            return await self._metrics(scope, authorization)
        key = await self._door.verified(authorization)
        request = Request(self._gate, key, caller_of(key), _query(scope))
        try:
            return await self._routed(request, scope, receive)
        except SlowBodyError:
            return wire_problem("request_timeout")
        except PermissionDenied as error:
            return problem(error, to_admin=request.is_admin)

    async def _routed(self, request: Request, scope: Scope, receive: Receive) -> Answer:
        method, path = scope["method"], scope["path"]
        if path == _CALL:
            return await self._call(request, method, receive, scope["headers"])
        if path in _SEVERAL:
            if method != "POST":
                return wire_problem("method_not_allowed")
            body = await read_object(receive)
            if path not in _ONCE:
                no_key(scope["headers"])
            done = await _SEVERAL[path](request, body)
            return 200, orjson.dumps(done)
        if path.startswith(PREFIX):
            return await self._administer(request, scope, receive)
        if path.startswith(approvals.PREFIX):
            return await self._approvals(request, scope, receive)
        if method != "GET":
            return wire_problem("method_not_allowed")
        found = await _read(request, scope)
        return wire_problem("not_found") if found is None else (200, orjson.dumps(found))

    @staticmethod
    async def _call(
        request: Request, method: str, receive: Receive, headers: list[tuple[bytes, bytes]]
    ) -> Answer:
        if method != "POST":
            return wire_problem("method_not_allowed")
        asked = read_call(await read_object(receive), headers)
        caller = request.caller
        if asked.context is not NO_CONTEXT or asked.session:
            caller = msgspec.structs.replace(caller, context=asked.context, session=asked.session)
        with _continued(request.gate, headers):
            if asked.wait_s:
                async with listening(receive):
                    output = await run_call(request.gate, caller, asked)
            else:
                output = await run_call(request.gate, caller, asked)
        if not request.gate.features.structured_tool_output:
            return 200, orjson.dumps(bare(output))
        return 200, orjson.dumps(output.to_machine())

    @staticmethod
    async def _approvals(request: Request, scope: Scope, receive: Receive) -> Answer:
        parts = _approval_parts(scope)
        methods = approvals.methods(parts)
        if not methods:
            return wire_problem("not_found")
        if scope["method"] != methods:
            return wire_problem("method_not_allowed")
        found = await approvals.answer(request, parts, receive)
        return wire_problem("approval_not_found") if found is None else (200, orjson.dumps(found))

    @staticmethod
    async def _administer(request: Request, scope: Scope, receive: Receive) -> Answer:
        parts = _parts(scope, PREFIX)
        methods = allowed_methods(parts)
        if not methods:
            return wire_problem("not_found")
        if scope["method"] not in methods:
            return wire_problem("method_not_allowed")
        found = await administer(request, scope["method"], parts, receive)
        return 200, orjson.dumps(found)

    async def _metrics(self, scope: Scope, authorization: bytes | None) -> Answer:
        """For whoever is on this machine, if nobody else can be; else for an admin's key."""
        metrics = self._gate.watch.metrics
        if metrics is None:
            return wire_problem("not_found")
        if not self._is_local:
            key = await self._door.verified(authorization)
            if key.role is not Role.ADMIN:
                raise PermissionDenied(
                    "The numbers are for an admin's key.", phase="door", reason="the key's role"
                )
        if scope["method"] != "GET":
            return wire_problem("method_not_allowed")
        return 200, await metrics()

    def _health(self, path: str) -> Answer:
        """Alive is alive; ready means that every source and engine has what it should."""
        if path == "/healthz":
            return 200, b'{"status":"ok"}'
        sick = [one.source for one in self._gate.catalog.health() if not one.ok]
        engines = [one for one in self._gate.gate.health() if not one.ok]
        # What decides all the same, by the last good policy or without what nodes share, is ready:
        # taking every node out would not help.
        is_ready = not sick and all(one.serves for one in engines)
        return (200 if is_ready else 503), orjson.dumps(
            {
                "status": "degraded" if sick or engines else "ready",
                "unhealthy_sources": len(sick),
                "unhealthy_engines": [one.engine for one in engines],
            }
        )


def _continued(
    gate: Runtime, headers: list[tuple[bytes, bytes]]
) -> contextlib.AbstractContextManager[None]:
    """Within the trace that the request came with, where somebody traces."""
    if gate.watch.spans is None:
        return contextlib.nullcontext()
    return gate.watch.spans.continued(
        {name.decode(): value.decode("latin-1") for name, value in headers if name in _TRACE}
    )


def _is_the_end(error: BaseException) -> bool:
    """Whether the request itself is being ended, and nobody waits for an answer."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, GeneratorExit)


async def _read(request: Request, scope: Scope) -> Any:
    path = scope["path"]
    if path == "/v1/tools":
        return await list_tools(request)
    if path.startswith(_TOOLS):
        *name, last = _parts(scope, _TOOLS)
        if name and last == "explain":
            return await explain_tool(request, "/".join(name))
        if name or last:
            return await show_tool(request, "/".join([*name, last]))
    if path == "/v1/ledger":
        return await list_calls(request)
    if path.startswith(_CALLS):
        [call_id, *more] = _parts(scope, _CALLS)
        return None if more or not call_id else await show_call(request, call_id)
    return None


def _allowed(scope: Scope) -> bytes:
    path = scope["path"]
    if path.startswith(PREFIX):
        return ", ".join(allowed_methods(_parts(scope, PREFIX))).encode()
    if path.startswith(approvals.PREFIX):
        return approvals.methods(_approval_parts(scope)).encode()
    return b"POST" if path == _CALL or path in _SEVERAL else b"GET"


def _approval_parts(scope: Scope) -> list[str]:
    """What follows `/v1/approvals`; `/v1/approvalsomething` is no such path."""
    first, *parts = _parts(scope, approvals.PREFIX)
    return ["", "", "", first] if first or parts == [""] else parts


def _query(scope: Scope) -> dict[str, str]:
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    found = dict(pairs)
    if "role" in found:
        # The one that can be given again: a role left out would be explained as if nobody had it.
        found["role"] = ",".join(value for name, value in pairs if name == "role")
    return found


def _parts(scope: Scope, prefix: str) -> list[str]:
    """What follows the prefix. An encoded slash belongs to a name and parts nothing."""
    raw = scope.get("raw_path", b"").decode("ascii", "replace")
    if raw.startswith(prefix):
        return [unquote(part) for part in raw.removeprefix(prefix).split("/")]
    return scope["path"].removeprefix(prefix).split("/")
