"""One connection to PostgreSQL. Its transactions say whose they are as they begin, and who ends it
in the middle of a statement leaves nothing behind.
"""

# asyncpg carries no complete types; strictness here would only be about it.
# pyright: reportMissingSuperCall=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportMissingTypeArgument=false

import asyncio
from typing import Any

import asyncpg

from toolgate.store.whose import beginning

_BEGIN = "BEGIN"
# What asks a server to stop a statement that nobody waits for, on a connection of its own.
_asking: set[asyncio.Task[Any]] = set()


class Line(asyncpg.Connection):
    """asyncpg's own, whose requests to stop a statement come to their end."""

    # Whose rows the next transaction sees.
    tenant = ""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109  the driver's
        """The driver's own `BEGIN` comes by here, and takes the tenant along: one way for both."""
        if self.tenant and query.startswith(_BEGIN):
            query = beginning(query, self.tenant)
        return await super().execute(query, *args, timeout=timeout)

    def terminate(self) -> None:
        """Close it now.

        The driver would stop these requests as well. One that is stopped in the middle of its
        handshake fails, and nobody asks for that failure but the log.
        """
        requests: set[asyncio.Task[Any]] = self._cancellations
        for request in requests:
            _asking.add(request)
            request.add_done_callback(_asking.discard)
        self._cancellations = set[asyncio.Task[Any]]()
        super().terminate()


async def settled(seconds: float) -> None:
    """Wait for the requests of this loop, but not for long: a server may never answer."""
    loop = asyncio.get_running_loop()
    if own := [one for one in _asking if one.get_loop() is loop]:
        await asyncio.wait(own, timeout=seconds)
