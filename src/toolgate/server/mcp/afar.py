"""Streams that are at another node: the rest of one is had through the store.

The node that has it is asked by a letter, and from then on puts there what it has for this reader,
until the stream is over or read at that node again. A node that does not answer is gone, and with
it the stream: its client begins anew.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any, cast

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.server.mcp import sse
from toolgate.server.mcp.post import Post
from toolgate.server.mcp.sessions import Session, Sessions
from toolgate.shelf import Place, Thing

KIND = "mcp.streams"
_EVERY = 0.25
# So often the node that has a stream says that it is there; who hears nothing for longer gives up.
_BEAT = 5.0
_GONE_NS = 20 * 10**9
_PATIENCE_NS = 4 * 10**9
_KEPT_NS = 600 * 10**9
_WANTED = "stream"
# What the end of a stream takes to be put where its reader finds it.
_LAST = 2.0


class Afar:
    """Both ends, of one node."""

    def __init__(self, sessions: Sessions, post: Post) -> None:
        self._sessions = sessions
        self._post = post
        self._mirrors: dict[sse.Stream, asyncio.Task[None]] = {}
        post.sweeps(KIND, _KEPT_NS)
        post.on(_WANTED, self._wanted)

    async def close(self) -> None:
        """Nobody here has anything for others any more, but the ends of what is over."""
        last = {task for stream, task in self._mirrors.items() if stream.is_closed}
        if last:
            await asyncio.wait(last, timeout=_LAST)
        for one in self._mirrors.values():
            one.cancel()

    async def read(
        self, session: Session, stream_id: str, after: int
    ) -> AsyncGenerator[tuple[int, bytes] | None]:
        """What is behind this number, as it comes; `None` where there is only silence. Nothing at
        all, not even silence, where the stream is gone.
        """
        shelf, place = self._post.shelf, _place(session)
        node, _, number = stream_id.rpartition("-")
        if shelf is None or not node or not number.isdigit():
            return
        # What was left there for an earlier reader is not waited on.
        await shelf.remove(place, [stream_id])
        wanted = {"session": session.name, "stream": stream_id, "after": after}
        wanted |= {"tenant": place.tenant, "key": place.owner}
        await self._post.send(node, _WANTED, wanted)
        seen, heard_ns, patience_ns, told = 0, clock.monotonic_ns(), _PATIENCE_NS, False
        while clock.monotonic_ns() - heard_ns < patience_ns:
            await asyncio.sleep(_EVERY)
            found = None
            with suppress(StoreError):
                found = await shelf.get(place, stream_id)
            if found is None or found.revision == seen:
                continue
            if found.body.get("gone"):
                return
            seen, heard_ns, patience_ns = found.revision, clock.monotonic_ns(), _GONE_NS
            if not told:
                told = True
                yield None
            for number_, text in cast("list[tuple[int, str]]", found.body["messages"]):
                if number_ > after:
                    after = number_
                    yield number_, text.encode()
            if found.body["over"]:
                await shelf.remove(place, [stream_id])
                return

    async def _wanted(self, letter: Mapping[str, Any]) -> None:
        """Somebody came for one of our streams, at another node."""
        session = self._sessions.named(letter["session"])
        stream = None if session is None else session.find(letter["stream"])
        if session is None or stream is None:
            place, gone = Place(letter["tenant"], KIND, letter["key"]), {"gone": True}
            if self._post.shelf is not None:
                await self._post.shelf.put(place, [Thing(key=letter["stream"], body=gone)])
            return
        before = self._mirrors.pop(stream, None)
        if before is not None:
            before.cancel()
        task = asyncio.create_task(self._mirror(session, stream, int(letter["after"])))
        self._mirrors[stream] = task
        task.add_done_callback(lambda _: self._forget(stream, task))

    def _forget(self, stream: sse.Stream, task: "asyncio.Task[None]") -> None:
        if self._mirrors.get(stream) is task:
            del self._mirrors[stream]

    async def _mirror(self, session: Session, stream: sse.Stream, after: int) -> None:
        shelf, place, taken = self._post.shelf, _place(session), stream.take()
        assert shelf is not None  # noqa: S101  a letter came by it
        held: list[tuple[int, str]] = []
        try:
            while not taken.is_set():
                held += [(number, text.decode()) for number, text in stream.behind(after)]
                after = held[-1][0] if held else after
                is_over = stream.is_closed and stream.count == after
                body = {"messages": held, "over": is_over}
                with suppress(StoreError):
                    await shelf.put(place, [Thing(key=stream.id, body=body)])
                    if is_over:
                        return
                await _some_news(stream, taken, after)
        finally:
            stream.let_go(taken)


async def written(
    send: sse.Send, stream_id: str, messages: AsyncGenerator[tuple[int, bytes] | None]
) -> bool:
    """All of them, on an answer that begins with the first; `False` where none ever came."""
    begun = False
    async with aclosing(messages):
        async for one in messages:
            if not begun:
                begun = True
                await send({"type": "http.response.start", "status": 200, "headers": sse.HEADERS})
            if one is not None:
                await sse.body(send, sse.event(one[1], f"{stream_id}.{one[0]}"))
    if begun:
        with suppress(OSError):
            await send({"type": "http.response.body", "body": b""})
    return begun


async def _some_news(stream: sse.Stream, taken: asyncio.Event, after: int) -> None:
    """Until there is more, or somebody else reads it; not for long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_BEAT):
            while (  # noqa: ASYNC110  whichever of three comes first
                stream.count == after and not stream.is_closed and not taken.is_set()
            ):
                await asyncio.sleep(_EVERY)


def _place(session: Session) -> Place:
    return Place(session.peer.caller.tenant, KIND, session.peer.key.id)
