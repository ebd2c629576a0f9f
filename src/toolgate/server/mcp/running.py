"""Requests that run: a client that goes away ends what changes nothing, and nothing else."""

import asyncio
from typing import Any

from toolgate import clock
from toolgate.server.body import Receive
from toolgate.server.mcp import sse

# Nearly every request is over by then, and has cost nothing more.
_AFTER = 1.0


class Running:
    """Requests whose answer is one piece. Those that take long are listened to."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], tuple[int, Receive]] = {}
        self._listeners: dict[asyncio.Task[Any], asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, task: asyncio.Task[Any], receive: Receive) -> None:
        """A request that can be given up begins."""
        self._tasks[task] = (clock.monotonic_ns(), receive)
        if self._timer is None:
            self._timer = task.get_loop().call_later(_AFTER, self._look)

    def leave(self, task: asyncio.Task[Any]) -> None:
        """It is over."""
        self._tasks.pop(task, None)
        listener = self._listeners.pop(task, None)
        if listener is not None:
            listener.cancel()

    def _look(self) -> None:
        self._timer = None
        oldest = clock.monotonic_ns() - int(_AFTER * 1e9)
        for task, (began_ns, receive) in self._tasks.items():
            if began_ns <= oldest and task not in self._listeners:
                self._listeners[task] = asyncio.create_task(_listen(task, receive))
        if self._tasks:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_AFTER, self._look)


async def _listen(task: asyncio.Task[Any], receive: Receive) -> None:
    await sse.left(receive)
    task.cancel()
