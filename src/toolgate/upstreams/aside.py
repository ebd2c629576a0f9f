"""What is said to a server beside the calls: whether it arrives changes nothing."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from toolgate.net.errors import Lost, NotSent
from toolgate.upstreams.failures import AwayError, BrokenError
from toolgate.upstreams.flood import MOST_OPEN
from toolgate.upstreams.message import FaultError


class Aside:
    """Holds what runs, so that it is not forgotten before it is over."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it, and do not wait. It is left undone where too much is under way."""
        if len(self._tasks) >= MOST_OPEN:
            work.close()
            return
        task = asyncio.create_task(quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def room(self) -> None:
        """Until something more can be done."""
        while len(self._tasks) >= MOST_OPEN:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        """What is not over yet is given up."""
        for task in self._tasks:
            task.cancel()


async def quietly(work: Coroutine[Any, Any, None]) -> None:
    """Do it; nobody is told that it failed."""
    try:
        await work
    except (NotSent, Lost, FaultError, AwayError, BrokenError):
        return
