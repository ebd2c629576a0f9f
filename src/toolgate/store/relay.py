"""Events between nodes, over a Redis channel: what happens on one is told to listeners on all.

Each message is signed by what the house signs by, so that nobody who merely reaches Redis can tell
listeners of what never happened. Nothing is promised: what could not be passed on is told as lost.
"""

# redis carries no complete types; strictness here would only be about it.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import contextlib
import hashlib
import hmac
import logging
import secrets
from collections import deque

import msgspec

from toolgate.call import Event
from toolgate.executor.people.bus import Bus
from toolgate.store.channel import Channel
from toolgate.store.redis import PREFIX, client

_log = logging.getLogger("toolgate.redis")
_SECONDS = 0.25
# What comes within this time goes together: one message costs as much as many events.
_GATHER = 0.02
_MOST_HELD = 2_000
_MOST_TOGETHER = 100
_READY_SECONDS = 1.0
_SIGNATURE, _NODE = 32, 8
_encode = msgspec.json.Encoder().encode


class _Told(msgspec.Struct, frozen=True):
    """One message. `lost`: how many before it were not sent."""

    events: list[Event]
    lost: int = 0


_decode = msgspec.json.Decoder(_Told).decode


class RedisRelay:
    """Of one node: sends what its bus is told, and hands out what others send while any listen."""

    def __init__(self, url: str, installation: str, secret: bytes, bus: Bus) -> None:
        """`url` and `installation` as for `RedisShared`; `secret` is the same on every node."""
        self._name = f"{PREFIX}{installation}:events"
        self._secret = secret
        self._bus = bus
        self._node = secrets.token_bytes(_NODE)
        self._client = client(url, connections=2)
        self._channel = Channel(
            lambda: client(url, listening=True), self._name, begun=self._began, heard=self._heard
        )
        self._is_begun = asyncio.Event()
        self._waiting: deque[Event] = deque()
        self._lost = 0
        self._sending: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None

    def listen(self) -> None:
        """Until nobody wants to hear any more."""
        self._channel.start()

    async def ready(self) -> None:
        """Nobody waits long for a server that is away."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                await self._is_begun.wait()

    def send(self, event: Event) -> None:
        """With the next message."""
        if len(self._waiting) >= _MOST_HELD:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(event)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="toolgate-relay")

    async def close(self) -> None:
        """What waits is sent, if that takes a moment only."""
        self._bus.relay = None
        sending = self._sending
        if sending is not None:
            await asyncio.wait({sending}, timeout=_SECONDS)
            sending.cancel()
        if self._leaving is not None:
            await self._leaving
        await self._channel.close()
        with contextlib.suppress(Exception):
            await self._client.aclose()

    async def _send(self) -> None:
        try:
            await asyncio.sleep(_GATHER)
            while self._waiting:
                await self._sent()
        finally:
            self._sending = None

    async def _sent(self) -> None:
        some = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_TOGETHER))]
        try:
            raw = self._node + _encode(_Told(some, self._lost))
            async with asyncio.timeout(_SECONDS):
                await self._client.publish(self._name, self._sign(raw) + raw)
        except Exception as error:  # noqa: BLE001  a broken server can break its client in any way
            if not self._lost:
                _log.warning("events are not told to other nodes (%s)", type(error).__name__)
            self._lost += len(some)
        else:
            self._lost = 0

    def _began(self) -> None:
        if self._is_begun.is_set():
            # It was away, and what was told meanwhile is not known here.
            self._bus.missed()
        self._is_begun.set()

    def _heard(self, data: bytes) -> None:
        if not len(self._bus):
            # The last who listened has gone.
            self._is_begun.clear()
            self._leaving = asyncio.create_task(self._channel.close())
            return
        signature, raw = data[:_SIGNATURE], data[_SIGNATURE:]
        if raw.startswith(self._node) or not hmac.compare_digest(signature, self._sign(raw)):
            return
        try:
            told = _decode(raw[_NODE:])
        except msgspec.DecodeError:
            # Another version's, which says it in another way.
            self._bus.missed()
            return
        if told.lost:
            self._bus.missed()
        for event in told.events:
            self._bus.hand_out(event)

    def _sign(self, raw: bytes) -> bytes:
        return hmac.digest(self._secret, raw, hashlib.sha256)
