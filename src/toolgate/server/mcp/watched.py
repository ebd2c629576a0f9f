"""A task at another node, for whoever listens here: the board is looked at while it is open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from toolgate.errors import StoreError
from toolgate.server.mcp.board import Noted
from toolgate.server.mcp.task import OPEN

EVERY = 1.0


class Watched:
    """One of them."""

    def __init__(self, id_: str, look: Callable[[], Awaitable[Noted | None]]) -> None:
        self.id = id_
        self._look = look

    def follow(self, tell: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        """Tell how it stands, soon and whenever that changes, until what comes back is called."""
        watching = asyncio.create_task(self._watch(tell), name="toolgate-mcp-watched")

        def leave() -> None:
            watching.cancel()

        return leave

    async def _watch(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        last: Mapping[str, Any] = {}
        while True:
            with suppress(StoreError):
                found = await self._look()
                if found is None:
                    return
                if _brief(found.shown) != last:
                    last = _brief(found.shown)
                    tell(found.shown)
                if found.shown["status"] not in OPEN:
                    return
            await asyncio.sleep(EVERY)


def _brief(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without how far it has come: a tool may say so a thousand times."""
    left_out = {"statusMessage", "lastUpdatedAt", "ttlMs"}
    return {name: value for name, value in shown.items() if name not in left_out}
