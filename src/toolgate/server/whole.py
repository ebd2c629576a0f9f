"""A request and an answer in one piece each, where the server can do that.

ASGI has two messages for an answer, which become two writes to the socket: a tenth of a short call.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

# What a scope has it by.
EXTENSION = "toolgate.whole"
Header = tuple[bytes, bytes]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# A larger body is not copied for it: the system takes head and body from where they are.
_MOST = 64 * 1024


class Head:
    """Headers that many answers have: as ASGI takes them, and as they are written."""

    __slots__ = ("headers", "raw")

    def __init__(self, *headers: Header) -> None:
        self.headers = headers
        self.raw = b"".join(b"%b: %b\r\n" % one for one in headers)


class Whole:
    """One request: its body, and its answer, whose headers are our own and need no check."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle: RequestResponseCycle | None = cycle

    def body(self) -> bytes | None:
        """All of the body, once, where all of it is there; else it has to be waited for."""
        cycle = self._cycle
        if cycle is None or cycle.more_body or cycle.disconnected or cycle.response_started:
            return None
        cycle.flow.resume_reading()
        cycle.waiting_for_100_continue = False
        cycle.message_event.clear()
        found, cycle.body = bytes(cycle.body), bytearray()
        return found

    def write(self, status: int, head: Head, body: bytes) -> bool:
        """Whether it is done; else it has to be sent as ASGI has it."""
        cycle = self._cycle
        if (
            cycle is None
            or cycle.disconnected
            or cycle.response_started
            or cycle.flow.write_paused
            or not cycle.keep_alive
            or cycle.scope["method"] == "HEAD"
        ):
            return False
        content = [STATUS_LINE[status]]
        for name, value in cycle.default_headers:
            content += (name, b": ", value, b"\r\n")
        content += (head.raw, b"content-length: %d\r\n\r\n" % len(body))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        if len(body) > _MOST:
            cycle.transport.writelines((b"".join(content), body))
        else:
            content.append(body)
            cycle.transport.write(b"".join(content))
        cycle.message_event.set()
        cycle.on_response()
        # The request knows this, and this the request: nobody would let go of them by themselves.
        self._cycle = None
        return True


def body_of(scope: MutableMapping[str, Any]) -> bytes | None:
    """The body of a request that has not been read, where all of it is there."""
    whole = _whole(scope)
    return None if whole is None else whole.body()


async def send_whole(
    scope: MutableMapping[str, Any],
    send: Send,
    status: int,
    head: Head,
    body: bytes,
) -> None:
    """Answer a request; `head` says nothing about its length and its connection."""
    whole = _whole(scope)
    if whole is not None and whole.write(status, head, body):
        return
    headers = [*head.headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _whole(scope: MutableMapping[str, Any]) -> Whole | None:
    extensions = scope.get("extensions")
    return None if extensions is None else extensions.get(EXTENSION)
