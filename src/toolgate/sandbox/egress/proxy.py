"""The one way out of a sandbox with `hosts`: a proxy of ours that knows them, and no others.

It speaks HTTP: a tunnel for TLS that names the host it was asked for, or one plain request. It
decides by the value it was made with, and ends with the program.
"""

import asyncio
import contextlib
import socket
from http import HTTPStatus

from toolgate import clock
from toolgate.net.dial import dial
from toolgate.net.errors import NotAllowed, NotSent
from toolgate.net.guard import Guard
from toolgate.net.location import Location
from toolgate.sandbox.egress.hello import MOST, IncompleteError, server_name
from toolgate.sandbox.egress.reach import Reach
from toolgate.sandbox.egress.relay import Far, Line, relay
from toolgate.sandbox.egress.request import RefusedError, Request, read

_MOST_LINES = 64
_MOST_HEAD = 16_384
_HEAD_SECONDS = 15.0
_DIAL_SECONDS = 15.0


class Proxy:
    """One program's. It may be closed again."""

    def __init__(self, reach: Reach, guard: Guard) -> None:
        self._reach = reach
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def serve(self, listener: socket.socket) -> None:
        """Answer whoever connects to it."""
        server = await asyncio.start_server(self._begin, sock=listener, limit=_MOST_HEAD)
        if self._is_closed:
            server.close()
        self._server = server

    def close(self) -> None:
        """Nobody is answered any more, and what goes on is cut."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        for task in self._busy:
            task.cancel()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near = Line(reader, writer)
        if self._is_closed or len(self._busy) >= _MOST_LINES:
            near.hang_up()
            return
        task = asyncio.create_task(self._answer(near))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)
        # One that is ended before it began closes nothing by itself.
        task.add_done_callback(lambda _: near.hang_up())

    async def _answer(self, near: Line) -> None:
        far: Line | None = None
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                request = await self._asked(near)
            far = await self._reached(request.location)
            await self._relayed(request, near, far)
        except RefusedError as refused:
            await _say(near, refused)
        except (OSError, EOFError):
            # It went away, or said nothing for too long: there is nobody to tell.
            pass
        finally:
            if far is not None:
                far.hang_up()

    async def _asked(self, near: Line) -> Request:
        try:
            head = await near.reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise RefusedError(431, "The head of the request is too long.") from None
        request = read(head, self._guard)
        # Before anything is looked up: a name can be a message, too.
        if not self._reach.holds(request.location):
            raise RefusedError(
                403,
                f"This program may not reach {request.location.place}. If it is to, an operator "
                "adds it to the `hosts` of its tool or server.",
            )
        return request

    async def _reached(self, location: Location) -> Line:
        until_ns = clock.monotonic_ns() + int(_DIAL_SECONDS * 1e9)
        try:
            target = await self._guard.resolve(location)
            return (await dial(target, Far, None, until_ns)).line
        except NotAllowed as refused:
            raise RefusedError(403, refused.message) from None
        except NotSent as refused:
            raise RefusedError(502, refused.message) from None

    async def _relayed(self, request: Request, near: Line, far: Line) -> None:
        if not request.is_tunnel:
            far.writer.write(request.head)
            await relay(near, far, body=request.body)
        else:
            near.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.timeout(_HEAD_SECONDS):
                far.writer.write(await _hello(near, request.location))
            await relay(near, far)
        await _closed(near)


async def _hello(near: Line, location: Location) -> bytes:
    """The first message of a tunnel: TLS for the host that was asked for, else nothing is sent.

    So a server that is a proxy itself cannot be told to go on from there, and one that serves many
    hosts is not asked for another.
    """
    wanted = "" if location.address is not None else location.host
    sent = b""
    while len(sent) < MOST:
        piece = await near.reader.read(MOST - len(sent))
        if not piece:
            break
        sent += piece
        try:
            if server_name(sent) == wanted:
                return sent
            break
        except IncompleteError:
            continue
        except ValueError:
            break
    raise ConnectionAbortedError("the tunnel is not used for TLS with its host")


async def _say(near: Line, refused: RefusedError) -> None:
    text = f"{refused}\n".encode()
    status = HTTPStatus(refused.status)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    near.writer.write(head.encode() + text)
    await _closed(near)


async def _closed(near: Line) -> None:
    """What was written is sent first, if anybody takes it."""
    near.writer.close()
    with contextlib.suppress(OSError):
        async with asyncio.timeout(_HEAD_SECONDS):
            await near.writer.wait_closed()
