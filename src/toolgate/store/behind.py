"""What can wait a moment is written behind the callers, together with others like it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_log = logging.getLogger("toolgate.store")
_EVERY = 0.1


class Behind(Generic[T]):
    """Takes things one by one and writes them in batches. A batch that fails goes on waiting.

    `write` may be handed what it has written before: an answer can get lost.
    """

    def __init__(self, name: str, write: Callable[[list[T]], Awaitable[None]]) -> None:
        self.closing = False
        # The weight of all that waits, and of what is being written: it may come back.
        self.load = 0
        self._name = name
        self._write = write
        self._waiting: list[T] = []
        self._weight = 0
        self._wake = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write."""
        self._writing = asyncio.create_task(self._write_behind(), name=f"toolgate-{self._name}")

    async def close(self) -> None:
        """Write what waits, then stop."""
        self.closing = True
        self._wake.set()
        if self._writing is not None:
            await self._writing
        await self.drain()

    def add(self, item: T, weight: int = 1) -> None:
        """Keep it until the next write, a tenth of a second at the most."""
        if not self._waiting:
            self._wake.set()
        self._waiting.append(item)
        self._weight += weight
        self.load += weight

    async def drain(self) -> None:
        """One write for all that wait; if it fails they go on waiting."""
        # A write that is under way may have begun before the newest came; the next has not.
        for _ in range(2):
            if self._draining is None or self._draining.done():
                if not self._waiting:
                    return
                self._draining = asyncio.create_task(self._write_waiting(), name="toolgate-drain")
            # Whoever goes away meanwhile must not stop a write that others wait for.
            await asyncio.shield(self._draining)

    async def _write_waiting(self) -> None:
        batch, self._waiting = self._waiting, []
        weight, self._weight = self._weight, 0
        try:
            await self._write(batch)
        except BaseException:
            self._waiting = batch + self._waiting
            self._weight += weight
            self._wake.set()
            raise
        self.load -= weight

    async def _write_behind(self) -> None:
        while not self.closing:
            await self._wake.wait()
            self._wake.clear()
            if not self.closing:
                await asyncio.sleep(_EVERY)
            try:
                await self.drain()
            except Exception as error:  # noqa: BLE001  whatever it is, the next write may succeed
                _log.warning("the %s could not be written (%s)", self._name, type(error).__name__)
