"""Lines to PostgreSQL for single questions: no transaction, no ping before it, one round trip.

Beside the pool, whose connections are handed out with both; a look at every call would pay for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

_MOST = 4
_GOODBYE_SECONDS = 1.0
_GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)


class Lines:
    """A few connections, each opened when it is first needed. Statements stay prepared on them."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._closed = False
        self._free: list[Any] = []
        self._room = asyncio.Semaphore(_MOST)

    async def ask(self, question: str, values: tuple[str, ...]) -> Sequence[Sequence[Any]]:
        """The rows."""
        async with self._room:
            if self._free:
                try:
                    return await self._asked(self._free.pop(), question, values)
                except TimeoutError:
                    raise
                except _GONE:
                    # It may only have slept through a restart of the server: a new one will tell.
                    self._hang_up()
            return await self._asked(await self._connect(), question, values)

    async def close(self) -> None:
        """Let go of those that nobody uses; the others follow when they are free."""
        self._closed = True
        while self._free:
            await self._free.pop().close(timeout=_GOODBYE_SECONDS)

    async def _asked(
        self, line: Any, question: str, values: tuple[str, ...]
    ) -> Sequence[Sequence[Any]]:
        kept = False
        try:
            rows = await line.fetch(question, *values)
            kept = not self._closed
        finally:
            # Whoever went away in the middle has left it with an answer that is not the next one's.
            if kept:
                self._free.append(line)
            else:
                line.terminate()
        return rows

    def _hang_up(self) -> None:
        while self._free:
            self._free.pop().terminate()
