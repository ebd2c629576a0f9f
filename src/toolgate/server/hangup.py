"""Who hangs up does not wait any more: a call of theirs that waits for a person is answered.

Nor does anybody once the server is about to end: they ask again, wherever they are answered then.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolgate.executor.people import presence
from toolgate.server.body import Receive
from toolgate.server.ending import ENDING


@asynccontextmanager
async def listening(receive: Receive) -> AsyncGenerator[None]:
    """While a call waits. One that has begun is not stopped: nobody could say how far it got."""
    left = asyncio.Event()

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    listener = asyncio.create_task(listen())
    try:
        with presence.until(left), ENDING.told(left.set):
            yield
    finally:
        listener.cancel()
