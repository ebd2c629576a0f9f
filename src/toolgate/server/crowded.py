"""What answers, instead of all else, while more requests are there than there is room for."""

import asyncio
import logging
from collections.abc import MutableMapping
from typing import Any

from toolgate.errors import Overloaded
from toolgate.server.body import Receive
from toolgate.server.headers import CLOSED
from toolgate.server.problems import problem
from toolgate.server.reply import PROBLEM
from toolgate.server.whole import Send

log = logging.getLogger("toolgate.server")
_AGAIN_S = 1
# It is in the log so often at most.
_TELL_SECONDS = 10.0


class Crowded:
    """An application of its own, for requests that nobody reads."""

    def __init__(self) -> None:
        self._quiet_until = 0.0

    async def __call__(
        self, _scope: MutableMapping[str, Any], _receive: Receive, send: Send
    ) -> None:
        """The same to everybody."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._quiet_until = now + _TELL_SECONDS
            log.warning("there are too many requests at once: some are told to come back")
        why = "So many requests are here that this one was not read. Nothing ran: send it again."
        status, body = problem(Overloaded(why, retry_after=_AGAIN_S))
        headers = [
            (b"content-type", PROBLEM),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % _AGAIN_S),
            (b"connection", b"close"),
            *CLOSED,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


CROWDED = Crowded()
