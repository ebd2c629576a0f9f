"""So many calls at a time for each provider, a fair turn for each tenant, a share for each tool."""

import asyncio
from collections import OrderedDict, deque
from typing import Protocol

from toolgate import clock
from toolgate.call import Call, Output
from toolgate.errors import Overloaded
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.resilience.deadline import depth, is_overdue, out_of_time
from toolgate.spec.effect import Effect

# How fast the usual duration of a tool follows what is seen, and how fast it is doubted.
_FOLLOW = 0.2
_DOUBT = 0.9
# So many times the usual duration has to be left: half of all calls take longer than usual.
_MARGIN = 2.0
# One part in so many on top of all places is for tenants that run little.
KEPT = 8


class Behind(Protocol):
    """What an irreversible call is asked once it has its place; it raises where it must not run."""

    async def __call__(self, call: Call, *, waited: bool) -> None:
        """`waited`: whether it had to wait for its place."""
        ...


class Bulkhead(Extension):
    """Lets calls in, lets some wait, and refuses the rest at once.

    One tool gets at most half of a provider's places, running and waiting: when it is stuck, the
    others go on. An eighth more is kept for tenants that run little: when one of them holds all
    places, the others go on, too. A call made from inside another never waits, since that one holds
    a place.
    """

    priority = 480

    def __init__(
        self, *, concurrency: int = 64, waiting: int = 1_000, behind: Behind | None = None
    ) -> None:
        self._behind = behind
        self._concurrency = concurrency
        self._waiting = waiting
        self._lanes: dict[str, _Lane] = {}

    def link(self, inner: Handler) -> Handler:
        """Where there is room, a place costs two sums."""
        lanes, behind, irreversible = self._lanes, self._behind, Effect.IRREVERSIBLE

        async def run(call: Call) -> Output:
            spec = call.grant.spec
            name, tenant = spec.name, call.grant.caller.tenant
            lane = lanes.get(spec.provider)
            if lane is None:
                lane = lanes[spec.provider] = _Lane(self._concurrency, self._waiting)
            mine = lane.busy.get(name, 0)
            # Those who wait are let in whenever somebody leaves: nobody is overtaken here.
            if mine < lane.each and lane.running < lane.most:
                lane.running += 1
                lane.busy[name] = mine + 1
                lane.held[tenant] = lane.held.get(tenant, 0) + 1
                began_ns = 0
            else:
                await lane.turn(call)
                began_ns = clock.monotonic_ns()
            try:
                if spec.effect is irreversible and behind is not None:
                    turn = call.turn
                    if turn is not None and turn.has_pending_messages is not None:
                        await behind(call, waited=began_ns != 0)
                return await inner(call)
            finally:
                lane.leave(name, tenant, began_ns)

        return run

    def standing(self) -> dict[tuple[str, ...], float]:
        """How many run and wait, by provider."""
        found: dict[tuple[str, ...], float] = {}
        for provider, lane in self._lanes.items():
            found[provider, "running"] = lane.running
            found[provider, "waiting"] = lane.waiting
        return found


class _Waiter:
    __slots__ = ("place", "until_ns")

    def __init__(self, until_ns: int) -> None:
        # Whether it has one; `None`: another tenant's call waits in its stead.
        self.place: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self.until_ns = until_ns


class _Lane:
    """One provider: who runs, and who waits, by tenant and tool."""

    def __init__(self, most: int, waiting: int) -> None:
        self.most = most
        self.each = max(most // 2, 1)
        self.running = 0
        # By tool, and by tenant.
        self.busy: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self._kept = most // KEPT
        self._little = max(self._kept // 2, 1)
        self._most_waiting = waiting
        self._most_waiting_each = (waiting + 1) // 2
        self._queues: OrderedDict[str, OrderedDict[str, deque[_Waiter]]] = OrderedDict()
        self._queued: dict[str, int] = {}
        self._all_queued = 0
        # How long calls that had to wait took once they ran: known only where it matters.
        self._usual_ns: dict[str, float] = {}

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._all_queued

    async def turn(self, call: Call) -> None:
        """Wait for a place. Who comes back without an error has one."""
        name, tenant = call.spec.name, call.caller.tenant
        if depth() > 1 or self._is_kept_for(tenant, name):
            self._take(name, tenant)
            return
        self._admit(call)
        waiter = _Waiter(call.until_ns)
        self._queues.setdefault(tenant, OrderedDict()).setdefault(name, deque()).append(waiter)
        self._queued[name] = self._queued.get(name, 0) + 1
        self._all_queued += 1
        try:
            has_place = await waiter.place
        except asyncio.CancelledError as error:
            if waiter.place.cancelled():
                self._drop(tenant, name, waiter)
            elif waiter.place.result():
                self.leave(name, tenant)
            if is_overdue(error):
                raise out_of_time(call) from None
            raise
        if has_place is None:
            raise _overloaded(name)
        if not has_place:
            raise out_of_time(call)

    def leave(self, name: str, tenant: str, began_ns: int = 0) -> None:
        """Give the place to the next."""
        self.running -= 1
        left = self.busy[name] - 1
        if left:
            self.busy[name] = left
        else:
            del self.busy[name]
        left = self.held[tenant] - 1
        if left:
            self.held[tenant] = left
        else:
            del self.held[tenant]
        if began_ns:
            took = clock.monotonic_ns() - began_ns
            usual = self._usual_ns.get(name, took)
            self._usual_ns[name] = usual + _FOLLOW * (took - usual)
        if self._all_queued:
            self._fill()
        elif self._usual_ns:
            self._usual_ns.clear()

    def _is_kept_for(self, tenant: str, name: str) -> bool:
        """Whether one of the further places is for this one: its tenant runs little."""
        return (
            self.held.get(tenant, 0) < self._little
            and self.running < self.most + self._kept
            and self.busy.get(name, 0) < self.each + self._kept
        )

    def _admit(self, call: Call) -> None:
        """Refuse at once what would wait in vain, or keep others from waiting."""
        name, tenant = call.spec.name, call.caller.tenant
        usual = self._usual_ns.get(name)
        if usual is not None:
            expected = _MARGIN * usual * (self._ahead(tenant, name) / self.each + 1)
            if clock.monotonic_ns() + expected > call.until_ns:
                # A guess that nothing gets past could never be corrected.
                self._usual_ns[name] = usual * _DOUBT
                raise _overloaded(name)
        if self._queued.get(name, 0) >= self._most_waiting_each:
            self._make_room(tenant, name, only=name)
        elif self._all_queued >= self._most_waiting:
            self._make_room(tenant, name)

    def _ahead(self, tenant: str, name: str) -> int:
        """How many of the tool run before the tenant's next: it takes turns with the others."""
        mine = self._length(tenant, name)
        return mine + sum(
            min(self._length(other, name), mine + 1) for other in self._queues if other != tenant
        )

    def _make_room(self, tenant: str, name: str, only: str | None = None) -> None:
        """All places in the queue, or in the tool's part of it, are taken.

        The tenant that has the most gives its last to one that has less; else it is refused.
        """
        crowd = max(self._queues, key=lambda one: self._length(one, only), default=tenant)
        if self._length(crowd, only) <= self._length(tenant, only) + 1:
            raise _overloaded(name)
        tools = self._queues[crowd]
        longest = only or max(tools, key=lambda one: len(tools[one]))
        waiter = tools[longest].pop()
        self._forget(crowd, longest)
        if not waiter.place.done():
            waiter.place.set_result(None)

    def _length(self, tenant: str, name: str | None) -> int:
        """How many calls of a tenant wait: of one tool, or of all."""
        tools = self._queues.get(tenant)
        if tools is None:
            return 0
        if name is not None:
            return len(tools.get(name, ()))
        return sum(len(queue) for queue in tools.values())

    def _fill(self) -> None:
        now = clock.monotonic_ns()
        while self.running < self.most + self._kept:
            found = self._next()
            if found is None:
                return
            tenant, name, waiter = found
            if waiter.place.done():
                continue
            # With less time than it usually takes, it would be begun only to be stopped.
            if now + _MARGIN * self._usual_ns.get(name, 0) > waiter.until_ns:
                waiter.place.set_result(False)
                continue
            self._take(name, tenant)
            waiter.place.set_result(True)

    def _next(self) -> tuple[str, str, _Waiter] | None:
        """The first in line of the tenant whose turn it is, of a tool that has a place left."""
        for tenant, tools in self._queues.items():
            for name, queue in tools.items():
                has_place = self.running < self.most and self.busy.get(name, 0) < self.each
                if has_place or self._is_kept_for(tenant, name):
                    waiter = queue.popleft()
                    self._forget(tenant, name)
                    if tenant in self._queues:
                        self._queues.move_to_end(tenant)
                        if name in tools:
                            tools.move_to_end(name)
                    return tenant, name, waiter
        return None

    def _drop(self, tenant: str, name: str, waiter: _Waiter) -> None:
        queue = self._queues[tenant].get(name) if tenant in self._queues else None
        # It may have been passed over already.
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            self._forget(tenant, name)

    def _forget(self, tenant: str, name: str) -> None:
        """One less waits; nothing is kept of tenants and tools that do not."""
        self._all_queued -= 1
        self._queued[name] -= 1
        if not self._queued[name]:
            del self._queued[name]
        tools = self._queues[tenant]
        if not tools[name]:
            del tools[name]
        if not tools:
            del self._queues[tenant]

    def _take(self, name: str, tenant: str) -> None:
        self.running += 1
        self.busy[name] = self.busy.get(name, 0) + 1
        self.held[tenant] = self.held.get(tenant, 0) + 1


def _overloaded(name: str) -> Overloaded:
    return Overloaded(
        f"Too many calls of {name!r}, or of tools of its kind, run or wait already. Nothing ran: "
        "try again in a moment.",
        retry_after=1,
    )
