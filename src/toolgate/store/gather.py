"""What several ask for in the same moment is done in one go, and each hears its own answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
_MOST = 500


class Gather(Generic[T, R]):
    """While one batch is written the next one collects: nobody waits for company.

    `work` gives an answer for each item, in their order. Where it raises, all of the batch hear it.
    """

    def __init__(
        self, work: Callable[[list[T]], Awaitable[Sequence[R]]], *, most: int = _MOST
    ) -> None:
        self._work = work
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._running: asyncio.Task[None] | None = None

    async def do(self, item: T) -> R:
        """Whoever is cancelled meanwhile does not take it back."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done))
        if self._running is None:
            self._running = asyncio.create_task(self._work_off(), name="toolgate-gather")
        return await done

    async def close(self) -> None:
        """Until all that was asked for is done."""
        while self._running is not None:
            await self._running

    async def _work_off(self) -> None:
        try:
            # The others that come in the same moment.
            await asyncio.sleep(0)
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                await self._batch(batch)
        finally:
            self._running = None

    async def _batch(self, batch: Sequence[tuple[T, "asyncio.Future[R]"]]) -> None:
        try:
            answers = await self._work([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001  whoever waits must hear it
            for _, done in batch:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), answer in zip(batch, answers, strict=True):
            if not done.done():
                done.set_result(answer)
