"""Names to addresses: asked once in a while, for all who wait together."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from toolgate import clock
from toolgate.net.addresses import Address

# Long enough for a burst, short enough that a host that moves is found.
_KEPT_NS = 5_000_000_000
_MOST_NAMES = 1_024
Lookup = Callable[[str], Awaitable[tuple[Address, ...]]]


async def system(host: str) -> tuple[Address, ...]:
    """What this machine's resolver says; a name without an address is an `OSError`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(str(answer[4][0])) for answer in found))


class Resolver:
    """Keeps answers for some seconds; who asks while a look-up runs waits for that one."""

    def __init__(self, lookup: Lookup = system) -> None:
        self._lookup = lookup
        self._known: dict[str, tuple[int, tuple[Address, ...]]] = {}
        self._asking: dict[str, asyncio.Task[tuple[Address, ...]]] = {}

    async def addresses(self, host: str) -> tuple[Address, ...]:
        """All of a host's addresses, in the order in which they are to be tried."""
        until, known = self._known.get(host, (0, ()))
        if clock.monotonic_ns() < until:
            return known
        asking = self._asking.get(host)
        if asking is None or asking.get_loop() is not asyncio.get_running_loop():
            asking = self._asking[host] = asyncio.create_task(self._asked(host))
            # Whoever waited may have gone before it failed.
            asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(asking)

    async def _asked(self, host: str) -> tuple[Address, ...]:
        try:
            found = await self._lookup(host)
        finally:
            self._asking.pop(host, None)
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        self._known[host] = (clock.monotonic_ns() + _KEPT_NS, found)
        return found
