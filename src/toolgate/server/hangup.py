"""Who hangs up does not wait any more: a call of theirs that waits for a person is answered.

Nor does anybody once the server is about to end: they ask again, wherever they are answered then.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from toolgate.errors import InvalidRequest
from toolgate.executor.people import presence
from toolgate.server.body import Receive
from toolgate.server.ending import ENDING

T = TypeVar("T")


@asynccontextmanager
async def listening(receive: Receive) -> AsyncGenerator[None]:
    """While a call waits. One that has begun is not stopped: nobody could say how far it got."""
    left = asyncio.Event()

    async def listen() -> None:
        await _gone(receive)
        left.set()

    listener = asyncio.create_task(listen())
    try:
        with presence.until(left), ENDING.told(left.set):
            yield
    finally:
        listener.cancel()


async def while_there(receive: Receive, work: Awaitable[T]) -> T:
    """What comes of work that changes nothing: it is stopped once nobody waits for it."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise InvalidRequest("Whoever asked for this hung up; it was stopped.")
        return await working
    finally:
        leaving.cancel()
        working.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
