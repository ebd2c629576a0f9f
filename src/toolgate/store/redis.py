"""Redis between nodes: decisions with a time to live, and word of changes.

Whatever goes wrong here is a miss. Every operation is bounded; after a failure the server is left
alone for a second, so that a call does not pay for its absence again and again.
"""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from toolgate import clock
from toolgate.errors import SettingsInvalid
from toolgate.gate.policy import Health
from toolgate.store.notices import Notices

T = TypeVar("T")
_log = logging.getLogger("toolgate.redis")
PREFIX = "toolgate:"
CHANNEL = PREFIX + "changes"
_SECONDS = 0.25
_PAUSE_NS = 1_000_000_000
_CONNECTIONS = 32
_LARGEST = 1024 * 1024


class RedisShared:
    """The port `gate.shared.Shared` over a Redis server."""

    def __init__(self, url: str, installation: str = "") -> None:
        """`url` is `redis://HOST:PORT/DB`, or `rediss://` with TLS.

        Nodes of one installation have one store; those of another must not find its decisions.
        """
        self._prefix = f"{PREFIX}{installation}:" if installation else PREFIX
        self._client = client(url)
        self._notices = Notices(lambda: client(url, listening=True), CHANNEL)
        self._problem = ""
        self._again_ns = 0

    def start(self) -> None:
        """Begin to listen, if anybody wants to hear."""
        self._notices.start()

    async def close(self) -> None:
        """Stop to listen, and let go."""
        await self._notices.close()
        with contextlib.suppress(Exception):
            await self._client.aclose()

    async def get(self, key: str) -> bytes | None:
        """The bytes that are there, whoever put them there; `None` where there are none."""
        if self._is_left_alone():
            return None
        found = await self._tried(lambda: self._client.get(self._name(key)))
        return found if isinstance(found, bytes) and len(found) <= _LARGEST else None

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Keep it for so long; at least a millisecond, or it would be kept for ever."""
        if len(value) > _LARGEST or self._is_left_alone():
            return
        milliseconds = max(int(ttl_s * 1_000), 1)
        await self._tried(lambda: self._client.set(self._name(key), value, px=milliseconds))

    async def announce(self, revision: int) -> None:
        """Tried also while the server is left alone: a change is rare, and nobody waits for it."""
        await self._tried(lambda: self._client.publish(CHANNEL, str(revision)))

    def subscribe(self, on_change: Callable[[int], None]) -> None:
        """Before `start`."""

        def heard(revision: int) -> None:
            # Whoever says something is there again, also where nobody had anything to ask.
            self._answered()
            on_change(revision)

        self._notices.subscribe(heard)

    def health(self) -> Health:
        """What went wrong the last time, in one word."""
        problem = self._problem or self._notices.problem
        return Health(engine="redis", ok=not problem, problem=problem)

    def _name(self, key: str) -> bytes:
        return (self._prefix + key).encode("utf-8", "surrogatepass")

    def _is_left_alone(self) -> bool:
        return self._again_ns > 0 and clock.monotonic_ns() < self._again_ns

    async def _tried(self, operation: Callable[[], Awaitable[T]]) -> T | None:
        try:
            async with asyncio.timeout(_SECONDS):
                done = await operation()
        except Exception as error:  # noqa: BLE001  a broken server can break its client in any way
            self._again_ns = clock.monotonic_ns() + _PAUSE_NS
            self._failed(type(error).__name__)
            return None
        self._answered()
        return done

    def _answered(self) -> None:
        self._again_ns = 0
        if self._problem:
            self._problem = ""
            _log.warning("Redis answers again")

    def _failed(self, kind: str) -> None:
        if not self._problem:
            _log.warning("Redis does not answer (%s); this node decides by itself", kind)
        self._problem = f"it does not answer ({kind}); this node decides by itself"


def client(url: str, *, listening: bool = False, connections: int = _CONNECTIONS) -> "Redis":
    """One that gives up in time, and that tries once more on a connection that had been lost."""
    options: dict[str, Any] = {
        "socket_connect_timeout": _SECONDS,
        "socket_timeout": None if listening else _SECONDS,
        "retry": Retry(NoBackoff(), 0 if listening else 1),
        "decode_responses": False,
        "protocol": 2,
    }
    try:
        pool = BlockingConnectionPool.from_url(
            url, max_connections=connections, timeout=_SECONDS, **options
        )
    except ValueError:
        # Its text would show a part of the url, which can be the password.
        problem = (
            "cache.url: write redis://USER:PASSWORD@HOST:PORT/DB, "
            "and signs such as @ : / in a password as %40 %3A %2F"
        )
        raise SettingsInvalid([problem]) from None
    return Redis.from_pool(pool)
