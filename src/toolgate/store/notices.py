"""Word of changes over a Redis channel: revisions, as decimal digits."""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

_log = logging.getLogger("toolgate.redis")
_REVISION = re.compile(rb"0|[1-9][0-9]{0,18}")
_CONNECT_SECONDS = 1.0
# After so long without a word the server is asked for one; twice in a row, and it is gone.
_QUIET_SECONDS = 1.0
_QUIET = 2
_AGAIN_SECONDS = 0.5


class Notices:
    """Listens, and begins anew when the server was away."""

    def __init__(self, client: Callable[[], Redis], channel: str) -> None:
        self.problem = ""
        self._client = client
        self._channel = channel
        self._subscribers: list[Callable[[int], None]] = []
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Call this with every revision, and with 0 whenever listening begins."""
        self._subscribers.append(on_change)

    def start(self) -> None:
        """Begin to listen, if anybody wants to hear."""
        if self._subscribers and self._task is None:
            self._task = asyncio.create_task(self._listen(), name="toolgate-notices")

    async def close(self) -> None:
        """Stop to listen."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except Exception as error:  # noqa: BLE001  a broken server can break its client in any way
                self.problem = f"changes are not heard of ({type(error).__name__})"
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _hear(self) -> None:
        client = self._client()
        try:
            async with client.pubsub() as channel:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await channel.subscribe(self._channel)
                await self._follow(channel)
        finally:
            with contextlib.suppress(Exception):
                await client.aclose()

    async def _follow(self, channel: PubSub) -> None:
        quiet = 0
        while quiet < _QUIET:
            message: dict[str, Any] | None = await channel.get_message(timeout=_QUIET_SECONDS)
            if message is None:
                quiet += 1
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await channel.ping()
                continue
            quiet = 0
            if message["type"] == "subscribe":
                self.problem = ""
                # What was announced before is not known here.
                self._tell(0)
            elif message["type"] == "message":
                revision = _revision(message["data"])
                if revision is not None:
                    self._tell(revision)
        raise ConnectionError("the server says nothing any more")

    def _tell(self, revision: int) -> None:
        for on_change in self._subscribers:
            try:
                on_change(revision)
            except Exception as error:  # noqa: BLE001  one that fails must not deafen the others
                _log.warning("a change could not be passed on (%s)", type(error).__name__)


def _revision(data: object) -> int | None:
    """Anybody can write to a channel: exactly a number, or nothing."""
    return int(data) if isinstance(data, bytes) and _REVISION.fullmatch(data) else None
