"""Who hears what happens: the turn that a call belongs to, and whoever subscribes."""

import asyncio
import inspect
import logging
import weakref
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Protocol, Self

from toolgate import clock
from toolgate.call import Call, Event, Turn
from toolgate.ledger.entry import Entry
from toolgate.ledger.events import event_of

log = logging.getLogger("toolgate.events")
LOST = "events.lost"
_MOST_HELD = 1_000
# A turn that takes longer to be told does not hold up its own call.
_PATIENCE = 1.0


class Subscription(AsyncIterator[Event]):
    """Events as they come, from the moment this was made: `async for event in gate.events()`.

    Who reads too slowly loses the oldest, and is told how many by an event `events.lost`.
    """

    def __init__(self, tenant: str | None, most: int, relay: "Relay | None" = None) -> None:
        self._tenant = tenant
        self._relay = relay
        self._held: deque[Event] = deque()
        self._most = most
        self._lost = 0
        self._is_over = False
        self._news = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._held and not self._lost:
            if self._is_over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return _lost(lost, self._tenant or "")
        return self._held.popleft()

    async def ready(self) -> Self:
        """It listens from the moment it was made; other nodes, and a server, have to be reached."""
        if self._relay is not None:
            await self._relay.ready()
        return self

    def put(self, event: Event) -> None:
        """Keep it for whoever reads here."""
        if self._is_over or (self._tenant is not None and event.tenant != self._tenant):
            return
        if len(self._held) >= self._most:
            self._held.popleft()
            self._lost += 1
        self._held.append(event)
        self._news.set()

    def miss(self) -> None:
        """Something that was to be put here is lost."""
        self._lost += 1
        self._news.set()

    def close(self) -> None:
        """No more comes; what is held can still be read."""
        self._is_over = True
        self._news.set()


class Relay(Protocol):
    """Passes events on to the other nodes, and hands out theirs."""

    def listen(self) -> None:
        """Somebody wants to hear what other nodes send."""
        ...

    async def ready(self) -> None:
        """Once that is heard; not for long."""
        ...

    def send(self, event: Event) -> None:
        """At once, and without a word of how it went."""
        ...


class Bus:
    """Tells what happens here, and on other nodes where a relay passes it on. Nobody who listens
    can hold up or fail a call.
    """

    def __init__(self) -> None:
        # Weakly: who lets go of a subscription has ended it.
        self._subscriptions: weakref.WeakSet[Subscription] = weakref.WeakSet()
        self.relay: Relay | None = None

    def __len__(self) -> int:
        """How many listen."""
        return len(self._subscriptions)

    def subscribe(self, tenant: str | None = None, *, most: int = _MOST_HELD) -> Subscription:
        """Events of one tenant, or of all."""
        made = Subscription(tenant, most, self.relay)
        self._subscriptions.add(made)
        if self.relay is not None:
            self.relay.listen()
        return made

    def close(self) -> None:
        """Every subscription comes to its end."""
        for one in self._subscriptions:
            one.close()

    def hear(self, call: Call) -> bool:
        """Whether anybody listens to what is told of this call."""
        if self._subscriptions or self.relay is not None:
            return True
        return call.turn is not None and call.turn.emit is not None

    async def tell(self, call: Call, entry: Entry) -> None:
        """A side effect is in this state now; a pure call is not spoken of."""
        event = event_of(entry, clock.unix_ns()) if self.hear(call) else None
        if event is not None:
            await self.publish(event, call.turn)

    async def publish(self, event: Event, turn: Turn | None = None) -> None:
        """To those who subscribed, here and elsewhere, then to the turn."""
        self.hand_out(event)
        if self.relay is not None:
            self.relay.send(event)
        if turn is not None and turn.emit is not None:
            await _emit(turn, event)

    def hand_out(self, event: Event) -> None:
        """To those who subscribed here."""
        for one in self._subscriptions:
            one.put(event)

    def missed(self) -> None:
        """Other nodes may have told something that was not heard here: nobody can say how much."""
        for one in self._subscriptions:
            one.miss()


async def _emit(turn: Turn, event: Event) -> None:
    assert turn.emit is not None  # noqa: S101  its caller has looked
    try:
        told: Any = turn.emit(event)
        if inspect.isawaitable(told):
            async with asyncio.timeout(_PATIENCE):
                await told
    except Exception as error:  # noqa: BLE001  the turn's trouble is not the call's
        log.warning(
            "the turn could not be told of %s of call %s (%s)",
            event.kind,
            event.call_id,
            type(error).__name__,
        )


def _lost(number: int, tenant: str) -> Event:
    now = clock.unix_ns()
    return Event(
        id=f"evt_lost_{now:x}",
        kind=LOST,
        at_ns=now,
        tenant=tenant,
        agent="",
        tool="",
        call_id="",
        payload={"lost": number},
    )
