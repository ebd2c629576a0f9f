"""Word of changes over a Redis channel: revisions, as decimal digits."""

import logging
import re
from collections.abc import Callable

from redis.asyncio import Redis

from toolgate.store.channel import Channel

_log = logging.getLogger("toolgate.redis")
_REVISION = re.compile(rb"0|[1-9][0-9]{0,18}")


class Notices:
    """Listens, and begins anew when the server was away."""

    def __init__(self, client: Callable[[], Redis], channel: str) -> None:
        self._channel = Channel(client, channel, begun=self._began, heard=self._heard)
        self._subscribers: list[Callable[[int], None]] = []

    @property
    def problem(self) -> str:
        """Why nothing is heard; nothing where all is well."""
        return self._channel.problem

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Call this with every revision, and with 0 whenever listening begins."""
        self._subscribers.append(on_change)

    def start(self) -> None:
        """Begin to listen, if anybody wants to hear."""
        if self._subscribers:
            self._channel.start()

    async def close(self) -> None:
        """Stop to listen."""
        await self._channel.close()

    def _began(self) -> None:
        # What was announced before is not known here.
        self._tell(0)

    def _heard(self, data: bytes) -> None:
        # Anybody can write to a channel: exactly a number, or nothing.
        if _REVISION.fullmatch(data):
            self._tell(int(data))

    def _tell(self, revision: int) -> None:
        for on_change in self._subscribers:
            try:
                on_change(revision)
            except Exception as error:  # noqa: BLE001  one that fails must not deafen the others
                _log.warning("a change could not be passed on (%s)", type(error).__name__)
