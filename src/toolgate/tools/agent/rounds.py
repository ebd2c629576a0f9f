"""Runs what agents have scheduled, when it is due, as the agents that asked for it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.tools.agent import keeping
from toolgate.tools.agent.appointment import Appointment
from toolgate.tools.agent.diary import KIND, Diary, Noted
from toolgate.tools.agent.keeping import Outcome, held, kept, moved
from toolgate.tools.agent.running import ran
from toolgate.tools.means import Means

log = logging.getLogger("toolgate.scheduler")
_SECOND = 1_000_000_000
# A house that is opened for a moment does not begin what others are there for.
_FIRST = 1.0
_IDLE = 30.0
# So soon is seen what another process has scheduled or cancelled.
_LOOK = 5.0
_MOST_AT_ONCE = 8
# Of one tenant: what takes long keeps others waiting for a turn at most.
_MOST_OF_ONE = 4
# What runs at the end gets so long.
_PATIENCE = 5.0


class _Due(NamedTuple):
    """One whose time has come."""

    since_ns: int
    tenant: str
    noted: Noted


class Rounds:
    """Of all tenants. Of several nodes, one holds an appointment while it runs; what a node that is
    gone has begun is run again as the same call, which the ledger lets happen once.
    """

    def __init__(self, means: Means, is_held: Callable[[], object] = lambda: False) -> None:
        """`is_held`: whether nothing is to be begun, though it is due."""
        self._means = means
        self._is_held = is_held
        self._running: dict[str, asyncio.Task[None]] = {}
        # How many of them are a tenant's.
        self._busy: dict[str, int] = {}
        self._resting = False

    async def run(self) -> None:
        """Look when something is due, and when something was scheduled here."""
        await self._wait(_FIRST)
        while not self._resting:
            self._means.scheduled.clear()
            try:
                following = None if self._is_held() else await self._look()
            except StoreError as error:
                log.warning("what is scheduled could not be looked at: %s", error)
                following = None
            except Exception as error:  # noqa: BLE001  one tenant's trouble must not end this
                log.error(  # noqa: TRY400  a trace would show what is kept
                    "what is scheduled cannot be read (%s)", type(error).__name__
                )
                following = None
            await self._wait(_pause(following))

    def rest(self) -> None:
        """Begin nothing from now on; what runs goes on."""
        self._resting = True
        self._means.scheduled.set()

    async def close(self) -> None:
        """Nothing new is begun by now; what runs may come to its end."""
        running = list(self._running.values())
        if not running:
            return
        await asyncio.wait(running, timeout=_PATIENCE)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._means.scheduled.wait()

    async def _look(self) -> int | None:
        """Begin what is due; when the next one is, if there is any."""
        following: list[int] = []
        due: list[_Due] = []
        for place in await self._means.shelf.places(KIND):
            for noted in await Diary(self._means.shelf, place.tenant).all():
                one = noted.appointment
                due_ns = max(one.next_ns, one.held_ns)
                if due_ns > clock.unix_ns():
                    following.append(due_ns)
                elif one.id not in self._running:
                    due.append(_Due(due_ns, place.tenant, noted))
        while (first := self._first(due)) is not None:
            due.remove(first)
            await self._begin(first)
        if due:
            # They come when one that runs is over, which is told.
            following.append(clock.unix_ns() + int(_LOOK * _SECOND))
        return min(following, default=None)

    def _first(self, due: list[_Due]) -> _Due | None:
        """Whose turn it is: of the tenant of which the fewest run, the one that waits longest."""
        if self._resting or len(self._running) >= _MOST_AT_ONCE:
            return None
        free = (one for one in due if self._busy.get(one.tenant, 0) < _MOST_OF_ONE)
        return min(
            free, key=lambda one: (self._busy.get(one.tenant, 0), one.since_ns), default=None
        )

    async def _begin(self, due: _Due) -> None:
        """Hold it first: who is not the one to change it leaves it alone."""
        tenant, noted = due.tenant, due.noted
        diary = Diary(self._means.shelf, tenant)
        one = held(noted.appointment, clock.unix_ns())
        if not await diary.change(Noted(one, noted.revision)):
            return
        task = asyncio.create_task(self._attend(diary, one))
        self._running[one.id] = task
        self._busy[tenant] = self._busy.get(tenant, 0) + 1

        def over(_task: object) -> None:
            del self._running[one.id]
            self._busy[tenant] -= 1
            if not self._busy[tenant]:
                del self._busy[tenant]
            self._means.scheduled.set()

        task.add_done_callback(over)

    async def _attend(self, diary: Diary, one: Appointment) -> None:
        try:
            async with _holding(diary, one.id):
                outcome = await ran(self._means, one)
            await self._keep(diary, one, outcome)
        except StoreError as error:
            log.warning("scheduled task %s is looked at again later: %s", one.id, error)
        except Exception as error:  # noqa: BLE001  as above
            log.error(  # noqa: TRY400  as above
                "scheduled task %s came to no end (%s)", one.id, type(error).__name__
            )

    async def _keep(self, diary: Diary, one: Appointment, outcome: Outcome) -> None:
        """How it went, and when it comes next."""
        after = moved(one, outcome, clock.unix_ns())
        found = await diary.find(one.id)
        if found is None:
            # It was cancelled while it ran.
            return
        # Told twice is told once; not told at all would be worse.
        await kept(self._means, one, outcome, is_over=after is None)
        if after is None:
            await diary.remove(one.id)
        else:
            await diary.change(Noted(after, found.revision))


@asynccontextmanager
async def _holding(diary: Diary, name: str) -> AsyncGenerator[None]:
    """As long as it takes: a call may take longer than one is held at a time."""
    task = asyncio.create_task(_hold(diary, name))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _hold(diary: Diary, name: str) -> None:
    while True:
        await asyncio.sleep(keeping.HOLD / _SECOND / 3)
        try:
            found = await diary.find(name)
            if found is None:
                # It was cancelled meanwhile.
                return
            await diary.change(Noted(held(found.appointment, clock.unix_ns()), found.revision))
        except StoreError as error:
            log.warning("scheduled task %s could not be held: %s", name, error)


def _pause(following: int | None) -> float:
    if following is None:
        return _IDLE
    return min(_LOOK, max(0.01, (following - clock.unix_ns()) / _SECOND))
