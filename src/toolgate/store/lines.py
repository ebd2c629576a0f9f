"""Lines to PostgreSQL for single statements: no transaction, no ping before it, one round trip.

Beside the pool, whose connections are handed out with both; every call would pay for it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from toolgate.store.database import Ran

_GOODBYE_SECONDS = 1.0
_GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
# The server took the whole statement back, because of others: it can be sent again.
_TAKEN_BACK = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_TIMES = 5
# The line broke, or was cut by a server that stops. What was sent may have been done.
_BROKEN = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
)


class Lines:
    """A few connections, each opened when it is first needed. Statements stay prepared on them."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], most: int) -> None:
        self._connect = connect
        self._closed = False
        self._free: list[Any] = []
        self._room = asyncio.Semaphore(most)

    async def run(self, statement: str, values: Sequence[Any]) -> Ran:
        """A statement that writes. Where the answer is lost it is sent a second time, and said."""
        again = False
        async with self._room:
            for time in range(_TIMES):
                # Who has waited through an outage meets only dead lines: the second is a new one.
                line = await self._connect() if again or not self._free else self._free.pop()
                try:
                    return Ran(await self._asked(line, statement, values), again)
                except TimeoutError:
                    raise
                except _TAKEN_BACK:
                    if time == _TIMES - 1:
                        raise
                except _BROKEN:
                    self._hang_up()
                    if again:
                        raise
                    again = True
        raise AssertionError("the last time returns or raises")

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
        self, line: Any, question: str, values: Sequence[Any]
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
