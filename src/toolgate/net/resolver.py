"""Names to addresses: asked once in a while, for all who wait together, and never for long."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from toolgate import clock
from toolgate.errors import Overloaded
from toolgate.executor.resilience.deadline import tenant
from toolgate.executor.resilience.places import Places
from toolgate.net.addresses import Address

# Nobody waits longer for a name; who looks it up may.
SECONDS = 4.0
# Long enough for a burst, short enough that a host that moves is found.
_KEPT_NS = 5_000_000_000
# What was not found may be there soon.
_MISSED_NS = 2_000_000_000
_MOST_NAMES = 1_024
# A look-up cannot be stopped: whose names are slow holds up their own, and no one else's.
_AT_ONCE, _EACH, _WAITING = 64, 4, 256
Lookup = Callable[[str], Awaitable[tuple[Address, ...]]]
Found = tuple[Address, ...]


async def system(host: str) -> Found:
    """What this machine's resolver says; a name without an address is an `OSError`.

    Each has a thread of its own, which no other work waits for, and which nothing waits for when
    the process ends: the system may ask for half a minute.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Found] = loop.create_future()

    def tell(addresses: Found, error: OSError | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    def look() -> None:
        addresses, problem = (), None
        try:
            said = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses = tuple(dict.fromkeys(ip_address(str(one[4][0])) for one in said))
        except (OSError, ValueError) as error:
            problem = error if isinstance(error, OSError) else OSError(str(error))
        # The loop may be gone; nobody waits then.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, addresses, problem)

    threading.Thread(target=look, name="toolgate-name", daemon=True).start()
    return await found


class Resolver:
    """Keeps answers for some seconds; who asks while a look-up runs waits for that one.

    Only with its own tenant: another's may wait behind other slow names.
    """

    def __init__(self, lookup: Lookup = system) -> None:
        self._lookup = lookup
        self._places = Places(_AT_ONCE, each=_EACH, waiting=_WAITING)
        self._known: dict[str, tuple[int, Found]] = {}
        # Whose look-ups took too long, and until when they are not waited for again.
        self._late: dict[tuple[str, str], int] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[Found]] = {}

    async def addresses(self, host: str) -> Found:
        """All of a host's addresses, in the order in which they are to be tried; none where there
        are none. `TimeoutError` where it takes too long to find out.
        """
        until, known = self._known.get(host, (0, ()))
        now = clock.monotonic_ns()
        if now < until:
            return known
        key = tenant(), host
        if now < self._late.get(key, 0):
            raise TimeoutError
        asking = self._asking.get(key)
        if asking is None or asking.get_loop() is not asyncio.get_running_loop():
            asking = self._asking[key] = asyncio.create_task(self._asked(host, key))
            # Whoever waited may have gone before it failed.
            asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            async with asyncio.timeout(SECONDS):
                return await asyncio.shield(asking)
        except TimeoutError:
            if len(self._late) >= _MOST_NAMES:
                self._late.clear()
            self._late[key] = clock.monotonic_ns() + _MISSED_NS
            raise

    async def _asked(self, host: str, key: tuple[str, str]) -> Found:
        found: Found = ()
        kept = _MISSED_NS
        try:
            async with self._places.held():
                # A name without an address is remembered as one.
                with contextlib.suppress(OSError, UnicodeError):
                    found = await self._lookup(host)
                    kept = _KEPT_NS
        except Overloaded:
            raise TimeoutError from None
        finally:
            self._asking.pop(key, None)
        if len(self._known) >= _MOST_NAMES:
            self._known.clear()
        self._known[host] = (clock.monotonic_ns() + kept, found)
        self._late.pop(key, None)
        return found
