"""Connections that are kept: handed out one request at a time, bounded, closed when unused."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable

from toolgate import clock
from toolgate.net.connection import Connection
from toolgate.net.dial import dial, verified
from toolgate.net.errors import NotSent
from toolgate.net.guard import Guard
from toolgate.net.location import Location
from toolgate.net.place import Place

MOST = 256
_SWEEP = 15.0
# Below what servers usually wait for the next request, of which the least is two seconds.
_SURE_NS = 1_500_000_000
_NEVER = 1 << 63
_TURNS = 5
# The same host through two guards is two places: one may be allowed what the other is not.
Key = tuple[frozenset[Place], str, str, int]


class _Host:
    """What there is to one host."""

    __slots__ = ("idle", "opened", "waiting")

    def __init__(self) -> None:
        self.idle: list[Connection] = []
        self.opened = 0
        self.waiting: deque[asyncio.Future[Connection | None]] = deque()


class Pool:
    """All connections of a client and of those that were made from it."""

    def __init__(self, *, most: int = MOST, tls: ssl.SSLContext | None = None) -> None:
        self._most = most
        self._tls = tls
        self._hosts: dict[Key, _Host] = {}
        self._all: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._bell: asyncio.TimerHandle | None = None
        self._rings_ns = _NEVER
        self._closed = False

    def kept(self, guard: Guard, location: Location, *, surely: bool) -> Connection | None:
        """One that is open and free; the one used last, so that the others grow old.

        `surely`: only one of a moment ago. The other side may be closing one that has been idle,
        and what is sent then cannot be sent again.
        """
        host = self._hosts.get((guard.places, location.scheme, location.host, location.port))
        while host is not None and host.idle:
            found = host.idle[-1]
            idle_ns = clock.monotonic_ns() - found.idle_ns
            if found.is_usable and idle_ns < found.kept_ns:
                return host.idle.pop() if idle_ns < _SURE_NS or not surely else None
            host.idle.pop()
            found.end()
        return None

    async def fresh(self, guard: Guard, location: Location, until_ns: int) -> Connection:
        """A new one; where there are as many as may be, the next that becomes free."""
        if self._closed:
            raise NotSent("The client is closed. Nothing was sent.")
        key = (guard.places, location.scheme, location.host, location.port)
        while (host := self._hosts.setdefault(key, _Host())).opened >= self._most:
            found = await self._turn(key, host)
            if found is None:
                break
            if found.is_usable:
                return found
        else:
            host.opened += 1
        try:
            target = await guard.resolve(location)
            tls = await self._context() if location.scheme == "https" else None
            made = await dial(target, lambda: Connection(self._freed(key, host)), tls, until_ns)
        except BaseException:
            self._given_up(key, host)
            raise
        if made.closed or self._closed:
            made.end()
            self._given_up(key, host)
            raise NotSent(f"{location.place} closes its connections. Nothing was sent.")
        self._all.add(made)
        return made

    def watch(self, one: Connection, until_ns: int) -> None:
        """It has to be done by then. One timer serves all, and rings for the earliest."""
        one.until_ns = until_ns
        if until_ns < self._rings_ns:
            self._set(until_ns)

    def _set(self, until_ns: int) -> None:
        if self._bell is not None:
            self._bell.cancel()
        self._rings_ns = until_ns
        left = max((until_ns - clock.monotonic_ns()) / 1e9, 0)
        self._bell = asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        self._bell, self._rings_ns = None, _NEVER
        now = clock.monotonic_ns()
        for one in tuple(self._all):
            if one.until_ns and one.until_ns <= now:
                one.expire()
        if waiting := [one.until_ns for one in self._all if one.until_ns]:
            self._set(min(waiting))

    async def close(self) -> None:
        """Let all of them go."""
        self._closed = True
        for timer in (self._sweeper, self._bell):
            if timer is not None:
                timer.cancel()
        for one in tuple(self._all):
            one.end()
        # Their transports tell in the loop's next turns.
        for _ in range(_TURNS):
            if self._all:
                await asyncio.sleep(0)

    async def _turn(self, key: Key, host: _Host) -> Connection | None:
        """A free connection, or nothing but the right to open one."""
        turn = asyncio.get_running_loop().create_future()
        host.waiting.append(turn)
        try:
            return await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                found = turn.result()
                if found is None:
                    self._given_up(key, host)
                elif found.is_usable:
                    self._hand_on(host, found)
            raise

    def _freed(self, key: Key, host: _Host) -> Callable[[Connection], None]:
        def freed(one: Connection) -> None:
            if not one.closed:
                self._hand_on(host, one)
            elif one in self._all:
                self._all.discard(one)
                if one in host.idle:
                    host.idle.remove(one)
                self._given_up(key, host)

        return freed

    def _given_up(self, key: Key, host: _Host) -> None:
        """There is one less: whoever waits may open another."""
        host.opened -= 1
        if not self._hand_on(host, None) and not host.opened and self._hosts.get(key) is host:
            del self._hosts[key]

    def _hand_on(self, host: _Host, one: Connection | None) -> bool:
        while host.waiting:
            turn = host.waiting.popleft()
            if not turn.done():
                host.opened += one is None
                turn.set_result(one)
                return True
        if one is None:
            return False
        one.idle_ns = clock.monotonic_ns()
        host.idle.append(one)
        if self._sweeper is None and not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP, self._sweep)
        return True

    def _sweep(self) -> None:
        now, left = clock.monotonic_ns(), False
        for host in tuple(self._hosts.values()):
            for one in tuple(host.idle):
                if now - one.idle_ns >= one.kept_ns:
                    host.idle.remove(one)
                    one.end()
            left = left or bool(host.idle)
        self._sweeper = None
        if left:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP, self._sweep)

    async def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            # It reads all authorities that this machine knows.
            self._tls = await asyncio.to_thread(verified)
        return self._tls
