"""`/.well-known/oauth-protected-resource`: where a client gets a token for this server."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from toolgate.server.body import Receive
from toolgate.server.headers import CLOSED
from toolgate.server.problems import wire_problem
from toolgate.server.reply import JSON, PROBLEM
from toolgate.server.tokens import METADATA, Tokens

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Page = Callable[[Scope, Receive, Send], Awaitable[None]]
# The server as a whole, and the one of its paths that clients take for a server of its own.
_RESOURCES = ("", "/mcp")


def pages(tokens: Tokens) -> dict[str, Page]:
    """By path, what answers there. Nobody needs a token to learn where to get one."""
    return {METADATA + path: _page(tokens.metadata(path)) for path in _RESOURCES}


def _page(document: bytes) -> Page:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001  ASGI's
        status, body, kind, more = 200, document, JSON, ()
        if scope["method"] not in {"GET", "HEAD"}:
            (status, body), kind = wire_problem("method_not_allowed"), PROBLEM
            more = ((b"allow", b"GET, HEAD"),)
        headers = [
            (b"content-type", kind),
            (b"content-length", b"%d" % len(body)),
            *CLOSED,
            *more,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer
