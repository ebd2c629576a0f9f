"""Writes that are finished also when whoever asked for them has gone away."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from toolgate.executor.resilience.deadline import is_overdue

_MOMENT = 0.15


class Late:
    """Holds such writes until they are over: the loop itself does not hold them."""

    def __init__(self) -> None:
        self._writing: set[asyncio.Task[object]] = set()

    async def finish(
        self, write: Coroutine[Any, Any, object], patience: float | None = None
    ) -> Exception | None:
        """What went wrong, or `None` once it is written.

        With patience, the writing goes on behind a caller who does not wait any longer.
        """
        writing = self._started(write)
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(writing)
        except asyncio.CancelledError as error:
            # Its time is over, but how it ended is known: that is worth a moment.
            if not is_overdue(error) or not (await asyncio.wait({writing}, timeout=_MOMENT))[0]:
                raise
            return None if writing.cancelled() else _only(writing.exception())
        except Exception as error:  # noqa: BLE001  the store's trouble is not the tool's
            return error
        return None

    def start(self, write: Coroutine[Any, Any, object]) -> None:
        """Write it behind somebody who cannot wait at all. Without a loop nothing can be."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            write.close()
        else:
            self._started(write)

    async def drain(self, patience: float) -> None:
        """Until nothing is being written, or so long."""
        if self._writing:
            await asyncio.wait(self._writing, timeout=patience)

    def _started(self, write: Coroutine[Any, Any, object]) -> "asyncio.Task[object]":
        writing = asyncio.ensure_future(write)
        self._writing.add(writing)
        writing.add_done_callback(self._over)
        return writing

    def _over(self, writing: "asyncio.Task[object]") -> None:
        self._writing.discard(writing)
        if not writing.cancelled():
            # Whoever waited has been told; asked for here so that the loop does not warn.
            writing.exception()


def _only(error: BaseException | None) -> Exception | None:
    return error if isinstance(error, Exception) else None
