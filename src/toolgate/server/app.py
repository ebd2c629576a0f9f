"""The HTTP door. The wire becomes a caller, a tool name and arguments; it knows nothing else."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from toolgate.errors import InvalidRequest, PermissionDenied, ToolgateError
from toolgate.runtime import Runtime
from toolgate.server.auth import Door, caller_of
from toolgate.server.body import Receive, SlowBodyError
from toolgate.server.etag import tagged
from toolgate.server.headers import CLOSED
from toolgate.server.heads import heads_of
from toolgate.server.host import host_check, is_loopback
from toolgate.server.origin import Origins, sharing
from toolgate.server.problems import problem, retry_after, wire_problem
from toolgate.server.reply import PROBLEM, Header, Reply, Stream, reply
from toolgate.server.request import Request
from toolgate.server.rights import not_for
from toolgate.server.route import Route
from toolgate.server.routes import TABLE
from toolgate.server.streaming import streamed
from toolgate.server.tokens import Tokens
from toolgate.server.whole import Head, send_whole
from toolgate.settings.settings import Server
from toolgate.telemetry.place import kind_of, place_of
from toolgate.tenancy.keys import Key

log = logging.getLogger("toolgate.server")
Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# What answers a path all by itself: another protocol, such as MCP.
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
NO_OTHERS: Mapping[str, Handler] = MappingProxyType({})
_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class App:
    """A bare ASGI application.

    `more`: exact paths with a handler of their own. Host and origin are checked before it is asked;
    who knocks, and what is answered, is its own affair.
    """

    def __init__(
        self,
        gate: Runtime,
        server: Server,
        more: Mapping[str, Handler] = NO_OTHERS,
        tokens: Tokens | None = None,
    ) -> None:
        self._gate = gate
        self._more = more
        world, used = (lambda: gate.tenancy.world), gate.tenancy.uses.note
        self.door = Door(world, used=used, tokens=tokens, refused=gate.watch.meter.knock)
        self._is_ours = host_check(server)
        self._origins = Origins(server)
        # With a public address there is a proxy on this machine, and it lets everybody in.
        self._is_local = is_loopback(server.host) and not server.public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever happens, the caller gets a problem and never a trace."""
        if scope["type"] != "http":
            raise RuntimeError(f"this server does not speak {scope['type']}")
        heads = heads_of(scope)
        origin = heads.only(b"origin")
        refusal = self._turned_away(scope, heads.only(b"host"), origin)
        if origin is not None and (foreign := self._origins.shared(origin)):
            send = sharing(send, foreign)
            # Every answer goes by what was just put around it.
            scope.pop("extensions", None)
        other = self._more.get(scope["path"]) if refusal is None else None
        if other is not None:
            await other(scope, receive, send)
            return
        try:
            found = refusal or await self._answer(scope, receive, heads.only(b"authorization"))
        except ToolgateError as error:
            found = refused(error, challenge=self.door.challenge_of(error))
        # Signals go to the loop, so an exit or an interrupt that arrives here was a tool's.
        except BaseException as error:
            if _is_the_end(error):
                raise
            # Its own words, and a trace, can hold anything: only its kind and place are kept.
            log.error("a request failed with %s in %s", kind_of(error), place_of(error))  # noqa: TRY400
            found = refused(ToolgateError("Something went wrong here; it is in the log."))
        if isinstance(found, Stream):
            await streamed(found, receive, send, is_head=scope["method"] == "HEAD")
            return
        status, body, kind, more = found
        if not more:
            await send_whole(scope, send, status, _head(kind), body)
            return
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *CLOSED]
        headers = _merged(headers, more)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _turned_away(self, scope: Scope, host: bytes | None, origin: bytes | None) -> Reply | None:
        """An answer to what was not meant for us, or to a browser that asks before it asks."""
        if not self._is_ours(host):
            return wire("misdirected_request")
        if origin is None:
            return None
        if not self._origins.lets(origin, host):
            return wire("forbidden_origin")
        allowed = self._origins.preflight(scope) if scope["method"] == "OPTIONS" else ()
        return Reply(204, b"", headers=allowed) if allowed else None

    async def _answer(
        self, scope: Scope, receive: Receive, authorization: bytes | None
    ) -> Reply | Stream:
        methods, names = TABLE.find(scope)
        route = methods.get(scope["method"])
        if route is None and methods and all(one.shown is not None for one in methods.values()):
            return _nowhere(methods)
        if route is not None and route.shown is not None and (self._is_local or not route.roles):
            return await route.shown(self._gate)
        key = await self.door.verified(authorization)
        caller = caller_of(key)
        query = _query(scope) if scope["query_string"] else _NO_QUERY

        async def again() -> Key:
            return await self.door.verified(authorization)

        request = Request(
            self._gate, key, caller, query, names, scope["headers"], receive, again, scope["path"]
        )
        try:
            return _nowhere(methods) if route is None else await _routed(route, request)
        except SlowBodyError:
            return wire("request_timeout", (b"connection", b"close"))
        except PermissionDenied as error:
            is_shut = route is not None and not route.lets_in(key)
            lacking = self.door.lacking(key, route.roles) if route and is_shut else b""
            return refused(error, to_admin=request.is_admin, challenge=lacking)


def _is_the_end(error: BaseException) -> bool:
    """Whether the request itself is being ended, and nobody waits for an answer."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, GeneratorExit)


def _query(scope: Scope) -> dict[str, str]:
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    found = dict(pairs)
    if len(found) != len(pairs):
        # The one that can be given again: a role left out would be explained as if nobody had it.
        if "role" in found:
            found["role"] = ",".join(value for name, value in pairs if name == "role")
        names = [name for name, _ in pairs if name != "role"]
        if len(set(names)) != len(names):
            raise InvalidRequest("A field stands in the query twice; send it once.")
    return found


async def _routed(route: Route, request: Request) -> Reply | Stream:
    if not route.lets_in(request.key):
        raise not_for(request.key)
    if request.query and not route.reads_query:
        request.takes(*route.takes)
    found = await route.answer(request)
    if type(found) is not Reply:
        if type(found) is Stream:
            return found
        found = reply(found)
    return tagged(request, found) if route.tagged else found


def _nowhere(methods: Mapping[str, Route]) -> Reply:
    if not methods:
        return wire("not_found")
    allowed = ", ".join(methods)
    return wire("method_not_allowed", (b"allow", allowed.encode()), more=f"Here: {allowed}.")


def refused(error: ToolgateError, *, to_admin: bool = False, challenge: bytes = b"") -> Reply:
    """An error as a problem, with the headers that belong to it."""
    status, body = problem(error, to_admin=to_admin)
    if status == 401:
        challenge = challenge or b"Bearer"
    headers: tuple[Header, ...] = ((b"www-authenticate", challenge),) if challenge else ()
    wait = retry_after(error)
    if wait is not None:
        headers = (*headers, (b"retry-after", wait))
    return Reply(status, body, PROBLEM, headers)


def wire(code: str, *headers: Header, more: str = "") -> Reply:
    """What only this door has to say."""
    return Reply(*wire_problem(code, more=more), PROBLEM, headers)


@cache
def _head(kind: bytes) -> Head:
    return Head((b"content-type", kind), *CLOSED)


def _merged(headers: list[Header], more: tuple[Header, ...]) -> list[Header]:
    """Those of the answer itself count."""
    named = {name for name, _ in more}
    return [*(one for one in headers if one[0] not in named and one[1]), *more]
