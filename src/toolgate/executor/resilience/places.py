"""So many at a time, of which each tenant has its share; who waits is let in turn by turn."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator

from toolgate.errors import Overloaded
from toolgate.executor.resilience.deadline import tenant


class Places:
    """For what cannot be stopped once it runs: a tenant never has more than `each` of `most`.

    So one whose work takes long keeps others waiting for a turn at most, and where few tenants are
    there, not even that. At most `waiting` of a tenant wait.
    """

    def __init__(self, most: int, *, each: int, waiting: int) -> None:
        self._most = most
        self._each = each
        self._waiting = waiting
        self._taken: dict[str, int] = {}
        self._in_all = 0
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """A place for the tenant whose call this is."""
        whose = await self.take()
        try:
            yield
        finally:
            self.leave(whose)

    async def take(self) -> str:
        """Wait for one, and be told whose it is, for `leave`. `Overloaded` where too many wait."""
        whose = tenant()
        # Whoever waits could not be let in: their tenant has its share, or there is no place left.
        if self._has_room(whose):
            self._add(whose)
            return whose
        queue = self._queues.setdefault(whose, deque())
        if len(queue) >= self._waiting:
            raise Overloaded(
                "Too much of this tenant waits already. Nothing ran: try again in a moment.",
                retry_after=1,
            )
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave(whose)
            else:
                self._forget(whose, turn)
            raise
        return whose

    def leave(self, whose: str) -> None:
        """The next may come."""
        self._in_all -= 1
        left = self._taken[whose] - 1
        if left:
            self._taken[whose] = left
        else:
            del self._taken[whose]
        while found := self._next():
            found[1].set_result(None)
            self._add(found[0])

    def _has_room(self, whose: str) -> bool:
        return self._in_all < self._most and self._taken.get(whose, 0) < self._each

    def _add(self, whose: str) -> None:
        self._in_all += 1
        self._taken[whose] = self._taken.get(whose, 0) + 1

    def _next(self) -> tuple[str, asyncio.Future[None]] | None:
        for whose, queue in self._queues.items():
            if self._has_room(whose):
                turn = queue.popleft()
                if queue:
                    self._queues.move_to_end(whose)
                else:
                    del self._queues[whose]
                # One that was cancelled a moment ago takes no place.
                return self._next() if turn.done() else (whose, turn)
        return None

    def _forget(self, whose: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(whose, deque())
        with contextlib.suppress(ValueError):
            queue.remove(turn)
        if not queue:
            self._queues.pop(whose, None)
