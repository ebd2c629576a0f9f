"""An answer in one piece: its head and its body in one write, where the server can do that.

ASGI has two messages for it, which become two writes to the socket: a tenth of a short call.
"""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

# What a scope has it by.
EXTENSION = "toolgate.whole"
Header = tuple[bytes, bytes]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# A larger body is not copied for it.
_MOST = 64 * 1024


class Whole:
    """Writes the answer to one request; its headers are our own, and need no check."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle: RequestResponseCycle | None = cycle

    def write(self, status: int, headers: Sequence[Header], body: bytes) -> bool:
        """Whether it is done; else it has to be sent as ASGI has it."""
        cycle = self._cycle
        if (
            cycle is None
            or len(body) > _MOST
            or cycle.disconnected
            or cycle.response_started
            or cycle.flow.write_paused
            or not cycle.keep_alive
            or cycle.scope["method"] == "HEAD"
        ):
            return False
        content = [STATUS_LINE[status]]
        for name, value in (*cycle.default_headers, *headers):
            content += (name, b": ", value, b"\r\n")
        content += (b"\r\n", body)
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.transport.write(b"".join(content))
        cycle.message_event.set()
        cycle.on_response()
        # The request knows this, and this the request: nobody would let go of them by themselves.
        self._cycle = None
        return True


async def send_whole(
    scope: MutableMapping[str, Any],
    send: Send,
    status: int,
    headers: Sequence[Header],
    body: bytes,
) -> None:
    """Answer a request; `headers` hold the length, and nothing about the connection."""
    extensions = scope.get("extensions")
    if extensions is not None:
        whole = extensions.get(EXTENSION)
        if whole is not None and whole.write(status, headers, body):
            return
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
