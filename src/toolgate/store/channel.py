"""A Redis channel, listened to: begun anew whenever the server was away."""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

_CONNECT_SECONDS = 1.0
# After so long without a word the server is asked for one; twice in a row, and it is gone.
_QUIET_SECONDS = 1.0
_QUIET = 2
_AGAIN_SECONDS = 0.5


class Channel:
    """One channel. `begun` is called whenever listening begins: what was said before is not known.

    `heard` gets each message, as bytes that anybody may have sent.
    """

    def __init__(
        self,
        client: Callable[[], Redis],
        name: str,
        *,
        begun: Callable[[], None],
        heard: Callable[[bytes], None],
    ) -> None:
        self.problem = ""
        self._client = client
        self._name = name
        self._begun = begun
        self._heard = heard
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is listened to, or tried to."""
        return self._task is not None

    def start(self) -> None:
        """Begin to listen."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen(), name="toolgate-channel")

    async def close(self) -> None:
        """Stop to listen."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

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
                    await channel.subscribe(self._name)
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
                self._begun()
            elif message["type"] == "message" and isinstance(message["data"], bytes):
                self._heard(message["data"])
        raise ConnectionError("the server says nothing any more")
