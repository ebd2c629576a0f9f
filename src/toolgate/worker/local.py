"""Calls from the store's own queue: heard of in this process, looked for as to the others."""

import asyncio
import contextlib
from collections.abc import Collection, Sequence

from toolgate.queue.queue import NOBODY, Queue, Taken

# How soon a call is seen that another process queued.
_LOOK = 0.1


class Local:
    """Takes from the queue itself."""

    def __init__(self, queue: Queue, *, every: float = _LOOK) -> None:
        self._queue = queue
        self._every = every
        self._news = asyncio.Event()

    def woken(self) -> None:
        """Something was queued here, or has ended that others waited behind."""
        self._news.set()

    async def take(
        self, room: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """At once where there is something. Where some tenants are left out nothing is waited for:
        a place for all may be free before.
        """
        if not room:
            return []
        self._news.clear()
        found = await self._queue.take(room, lease, but=but)
        if not found and not but:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._news.wait()
        return found
