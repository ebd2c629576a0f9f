"""Opening connections to PostgreSQL. Who goes away meanwhile leaves none half open.

A driver that is stopped in the middle of a handshake leaves a failure behind that nobody asks for,
and the log tells of it. So a connection is always opened to its end: for the next one who needs it,
or to be closed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

_GOODBYE_SECONDS = 1.0


class Opening:
    """Opens one for each who waits, and no more than that."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        # Those that nobody waits for any more.
        self._left: set[asyncio.Task[Any]] = set()

    async def __call__(self) -> Any:
        """A connection that is nobody else's."""
        opening = self._left.pop() if self._left else asyncio.create_task(self._opened())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._left.add(opening)
            # Called also where it is open by now.
            opening.add_done_callback(self._unwanted)
            raise

    async def close(self) -> None:
        """Not for long: a server may never answer."""
        if self._left:
            await asyncio.wait([*self._left], timeout=_GOODBYE_SECONDS)
        for opening in [*self._left]:
            opening.cancel()

    async def _opened(self) -> Any:
        return await self._connect()

    def _unwanted(self, opening: asyncio.Task[Any]) -> None:
        if opening not in self._left:
            return
        self._left.discard(opening)
        if not opening.cancelled() and opening.exception() is None:
            opening.result().terminate()
