"""Writes that are finished also when whoever asked for them has gone away."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Late:
    """Holds such writes until they are over: the loop itself does not hold them."""

    def __init__(self) -> None:
        self._writing: set[asyncio.Task[None]] = set()

    async def finish(
        self, write: Coroutine[Any, Any, None], patience: float | None = None
    ) -> Exception | None:
        """What went wrong, or `None` once it is written.

        With patience, the writing goes on behind a caller who does not wait any longer.
        """
        writing = asyncio.ensure_future(write)
        self._writing.add(writing)
        writing.add_done_callback(self._over)
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(writing)
        except Exception as error:  # noqa: BLE001  the store's trouble is not the tool's
            return error
        return None

    def _over(self, writing: "asyncio.Task[None]") -> None:
        self._writing.discard(writing)
        if not writing.cancelled():
            # Whoever waited has been told; asked for here so that the loop does not warn.
            writing.exception()
