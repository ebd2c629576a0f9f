"""`GET /v1/events`: what happens in a tenant, as it happens; an agent's key hears of its own."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from toolgate.call import Event
from toolgate.errors import InvalidRequest, RateLimited, ToolgateError
from toolgate.executor.people.bus import LOST, Subscription
from toolgate.runtime import Runtime
from toolgate.server import streaming
from toolgate.server.ending import ENDING
from toolgate.server.reply import Stream
from toolgate.server.request import Request
from toolgate.server.rights import Right, may
from toolgate.server.streaming import event
from toolgate.tenancy.keys import Key, Role

# Of one key, of its tenant, and of all together: each holds a connection, and what it has not read
# yet.
MOST_OF_KEY = 8
MOST_OF_TENANT = 256
MOST = 512
# What a key opens.
_BINDING = ("id", "role", "tenant", "agent", "user")


class Listeners:
    """Who listens to one house."""

    def __init__(self) -> None:
        self._open: dict[Subscription, Key] = {}

    def add(self, news: Subscription, key: Key) -> None:
        """One more, or `RateLimited`."""
        of_key = sum(one.id == key.id for one in self._open.values())
        of_tenant = sum(one.tenant == key.tenant for one in self._open.values())
        if of_key >= MOST_OF_KEY or of_tenant >= MOST_OF_TENANT or len(self._open) >= MOST:
            raise RateLimited(
                f"This key has {of_key} streams of events open, and may have {MOST_OF_KEY}; its "
                f"tenant may have {MOST_OF_TENANT}, and all together {MOST}. Close one first, or "
                "read on where you are.",
                retry_after=streaming.HEARTBEAT_S,
            )
        self._open[news] = key

    def remove(self, news: Subscription) -> None:
        """It is not read any more."""
        news.close()
        self._open.pop(news, None)


_houses: WeakKeyDictionary[Runtime, Listeners] = WeakKeyDictionary()


def listeners(gate: Runtime) -> Listeners:
    """Those of this house."""
    return _houses.setdefault(gate, Listeners())


async def events(request: Request) -> Stream:
    """A stream that begins now. It ends when the key does, or when the house closes."""
    news, here = request.gate.events(_tenant(request)), listeners(request.gate)
    here.add(news, request.key)
    # What another node does from now on is heard here too.
    await news.ready()
    return Stream(_told(request, news), lambda: here.remove(news))


def _tenant(request: Request) -> str:
    """Whose events: the key's own tenant, or whichever one who runs the house names."""
    own, asked = request.key.tenant, request.query.get("tenant", "")
    if asked in {"", own}:
        return own
    if request.key.role is not Role.ADMIN:
        raise InvalidRequest(
            "A key hears of its own tenant; leave 'tenant' out, or use a key of that one."
        )
    return asked


async def _told(request: Request, news: Subscription) -> AsyncGenerator[bytes]:
    coming: asyncio.Future[Event] | None = None
    try:
        # Also when the server is about to end, nothing more comes.
        with ENDING.told(news.close):
            yield streaming.HEARTBEAT
            while True:
                if coming is None:
                    coming = asyncio.ensure_future(anext(news))
                done, _ = await asyncio.wait({coming}, timeout=streaming.HEARTBEAT_S)
                if not await _is_let_in(request):
                    return
                if not done:
                    yield streaming.HEARTBEAT
                    continue
                if isinstance(coming.exception(), StopAsyncIteration):
                    return
                one, coming = coming.result(), None
                if _is_for(request, one):
                    yield event(one.kind, _shown(one), one.id)
    finally:
        if coming is not None:
            coming.cancel()


async def _is_let_in(request: Request) -> bool:
    """Whether the key still opens anything, and the same as when it came."""
    try:
        if request.again is None:
            return True
        now, then = await request.again(), request.key
    except ToolgateError:
        return False
    return all(getattr(now, name) == getattr(then, name) for name in _BINDING)


def _is_for(request: Request, one: Event) -> bool:
    if may(request.key, Right.LOOK) or one.kind == LOST:
        return True
    own = request.caller
    return (one.agent, one.payload.get("user", "")) == (own.agent, own.user)


def _shown(one: Event) -> dict[str, Any]:
    return msgspec.to_builtins(one)
