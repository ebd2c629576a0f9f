"""Runs queued calls: takes what is due, lets the house decide and run it, and ends it on record."""

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

import msgspec

from toolgate import clock
from toolgate.call import Failure, Output
from toolgate.crash import crash_here
from toolgate.errors import (
    CallRefused,
    CircuitOpen,
    InProgress,
    LimitsUnavailable,
    OutOfTime,
    Overloaded,
    PolicyUnavailable,
    RateLimited,
    RelationsUnavailable,
    StoreError,
    ToolgateError,
)
from toolgate.queue.message import (
    VERSION,
    Letter,
    Request,
    Result,
    UnreadableError,
    output_text,
    read_request,
)
from toolgate.queue.queue import NOBODY, Ended, Queue, Taken

_log = logging.getLogger("toolgate.worker")
# A store that is away is asked again after so long.
_AGAIN = 1.0
# One part in so many on top of all places is for tenants that run little here, and how often it is
# looked for what they have.
KEPT = 8
_LOOK_NS = 200_000_000
_FIRST_BACK = 0.5
_LAST_BACK = 60.0
_MS = 1_000_000
# So long what was cut off has to be put back.
_LAST_WORDS = 2.0

# The house cannot run it now, whatever it is: that says nothing about the call.
_NOT_ITS_FAULT = (
    CircuitOpen,
    InProgress,
    LimitsUnavailable,
    Overloaded,
    PolicyUnavailable,
    RateLimited,
    RelationsUnavailable,
)

Cut = Callable[[], Awaitable[None]]
Deliver = Callable[[Request], Awaitable[Output]]
# It is too late for a call; what is known of it, where it was begun before.
Expire = Callable[[Request], Awaitable[Output | None]]
# How a call ended, and where it is dead, what is left of it.
Tell = Callable[[Result, Letter | None], Awaitable[None]]


class Arrivals(Protocol):
    """Where taken calls come from."""

    async def take(
        self, room: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """At most so many, as soon as there are any; none after a moment without. `but`: of these
        tenants none.

        It is also asked with no room: whoever brings them must know that somebody is there.
        """
        ...


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works."""

    concurrency: int
    lease: float
    most_attempts: int


class Worker:
    """One of a process. `tell` hears of each end once it is on record."""

    def __init__(
        self,
        queue: Queue,
        arrivals: Arrivals,
        deliver: Deliver,
        terms: Terms,
        *,
        expire: Expire,
        tell: Tell,
    ) -> None:
        self._queue = queue
        self._arrivals = arrivals
        self._deliver = deliver
        self._terms = terms
        self._kept = terms.concurrency // KEPT
        # When it is looked for those of others the next time.
        self._look_ns = 0
        self._expire = expire
        self._tell = tell
        # By what runs them: one call can be here twice, once its lease was lost.
        self._running: dict[asyncio.Task[None], Taken] = {}
        self._freed = asyncio.Event()
        self._stopping = False
        # What ends from now on does so because this process does.
        self._is_cut = False
        # Nothing is taken, and nothing is being taken.
        self._over = asyncio.Event()
        self._over.set()

    @property
    def busy(self) -> int:
        """How many calls run here."""
        return len(self._running)

    async def run(self) -> None:
        """Until it is cancelled or drained. A store that is away is asked again."""
        self._over.clear()
        renewing = asyncio.create_task(self._renew(), name="toolgate-renew")
        sweeping = asyncio.create_task(self._sweep(), name="toolgate-sweep")
        try:
            while not self._stopping:
                await self._round()
            self._over.set()
            # What runs stays here until it has ended.
            while self._running:
                await asyncio.wait(list(self._running))
        finally:
            self._over.set()
            for task in (renewing, sweeping):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def rest(self) -> None:
        """Take nothing from now on; what runs goes on."""
        self._stopping = True
        self._freed.set()

    def has(self, call_id: str) -> bool:
        """Whether it runs here."""
        return any(taken.call_id == call_id for taken in self._running.values())

    async def drain(self, patience: float, cut: Cut) -> int:
        """Nothing new; what runs gets so many seconds. What is not over then is `cut` off: how many
        calls that are. Others take those that change nothing; of the rest it is not known how far
        they came.
        """
        self.rest()
        await self._rest(patience)
        left = len(self._running)
        if left:
            _log.warning("%d calls were not over and are cut off", left)
            self._is_cut = True
            await cut()
            await self._rest(_LAST_WORDS)
        return left

    async def _rest(self, seconds: float) -> None:
        """Until nothing runs here, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # What was being taken in this moment is run, too.
                await self._over.wait()
                while self._running:
                    await asyncio.wait(list(self._running))

    async def _round(self) -> None:
        room = self._terms.concurrency - len(self._running)
        try:
            found = await self._found(room)
        except ToolgateError as error:
            _log.warning("nothing is taken: %s", error)
            await asyncio.sleep(_AGAIN)
            return
        except Exception as error:  # noqa: BLE001  whoever takes must not end before the rest
            _log.error("nothing is taken: %s", type(error).__name__)
            await asyncio.sleep(_AGAIN)
            return
        for taken in found:
            crash_here("CP16")
            task = asyncio.create_task(self._attempt(taken), name=f"toolgate-{taken.call_id}")
            self._running[task] = taken
            task.add_done_callback(self._ended)
        # As it is now: a place may be free by the time that nothing was found.
        if not found and len(self._running) >= self._terms.concurrency:
            self._freed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_NS / 1e9 if self._kept else _AGAIN):
                    await self._freed.wait()

    async def _found(self, room: int) -> Sequence[Taken]:
        """Where one tenant has all places, the others have a few more: its calls may take long."""
        lease, more, now_ns = self._terms.lease, room + self._kept, clock.monotonic_ns()
        if room > 0 or more <= 0 or now_ns < self._look_ns:
            return await self._arrivals.take(max(room, 0), lease)
        self._look_ns = now_ns + _LOOK_NS
        little = max(self._kept // 2, 1)
        held = Counter(taken.tenant for taken in self._running.values())
        much = {tenant for tenant, many in held.items() if many >= little}
        return await self._arrivals.take(min(more, little), lease, but=much)

    async def _attempt(self, taken: Taken) -> None:
        try:
            await self._worked(taken)
        except StoreError as error:
            _log.warning("call %s is left: %s", taken.call_id, error)
            await self._let_go(taken)
        except Exception as error:  # noqa: BLE001  one call's trouble is not that of the others
            _log.error("call %s is left: %s", taken.call_id, type(error).__name__)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.pop(task, None)
        self._freed.set()

    async def _worked(self, taken: Taken) -> None:
        try:
            request = read_request(taken.message)
        except UnreadableError as error:
            await self._end(taken, _undelivered(taken, f"it cannot be read: {error}"), dead=True)
            return
        if taken.late:
            known = await self._expire(request)
            await self._end(taken, known or _late(taken))
            return
        if taken.attempts > self._terms.most_attempts:
            await self._end(taken, _lost(taken), dead=True, counts=False)
            return
        try:
            output = await self._deliver(request)
        except CallRefused as error:
            if not error.retryable:
                output = _refused(taken, error)
            elif isinstance(error, _NOT_ITS_FAULT):
                await self._queue.back(taken, _age_patience(request), counts=False)
                return
            elif taken.attempts < self._terms.most_attempts:
                await self._queue.back(taken, _patience(taken))
                return
            else:
                await self._end(taken, _undelivered(taken, str(error)), dead=True)
                return
        if self._is_cut and _has_done_nothing(output):
            await self._queue.back(taken, 0.0, counts=False)
            return
        crash_here("CP17")
        if output.cached and output.call_id == taken.call_id:
            # It was brought twice, and is its own first answer.
            output = msgspec.structs.replace(output, cached=False)
        await self._end(taken, output)

    async def _let_go(self, taken: Taken) -> None:
        """As soon as the store is back; if not by then, its lease runs out and it is anybody's."""
        until_ns = clock.monotonic_ns() + round(self._terms.lease * 1e9)
        while clock.monotonic_ns() < until_ns and not self._stopping:
            await asyncio.sleep(_AGAIN)
            with contextlib.suppress(StoreError):
                await self._queue.back(taken, _AGAIN, counts=False)
                return

    async def _end(
        self, taken: Taken, output: Output, *, dead: bool = False, counts: bool = True
    ) -> None:
        why = output.error.message if dead and output.error is not None else ""
        ended = Ended(
            call_id=taken.call_id,
            fence=taken.fence,
            output=output_text(output),
            why=why,
            counts=counts,
        )
        if not await self._queue.end(ended):
            # Somebody else has it: theirs counts, and the ledger has seen to it that it ran once.
            return
        if why:
            _log.error("call %s of %s is dead: %s", taken.call_id, taken.tool, why)
        crash_here("CP18")
        ended_ms = clock.unix_ns() // _MS
        result = Result(
            version=VERSION,
            id=taken.call_id,
            tool=taken.tool,
            tenant=taken.tenant,
            output=output,
            ended_ms=ended_ms,
        )
        tried = taken.attempts - int(not counts)
        await self._tell(result, _letter(taken, why, tried, ended_ms) if why else None)

    async def _renew(self) -> None:
        """What runs here stays here."""
        while True:
            await asyncio.sleep(self._terms.lease / 3)
            with contextlib.suppress(StoreError):
                await self._queue.renew(list(self._running.values()), self._terms.lease)

    async def _sweep(self) -> None:
        """What somebody took and never ended is due again."""
        while True:
            await asyncio.sleep(self._terms.lease / 3 * random.uniform(0.5, 1.0))  # noqa: S311
            with contextlib.suppress(StoreError):
                found = await self._queue.sweep()
                if found:
                    _log.warning("%d calls were lost by others and are due again", found)


def _has_done_nothing(output: Output) -> bool:
    """One that was cut off, and of which it is known that nothing came of it."""
    code = "" if output.error is None else output.error.code
    return output.status == "error" and code == "timed_out"


def _patience(taken: Taken) -> float:
    """Longer each time, and never the same for two."""
    longest = min(_FIRST_BACK * 2 ** (taken.attempts - 1), _LAST_BACK)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret hangs on it


def _age_patience(request: Request) -> float:
    """The longer it has waited, the longer it can wait: until its time is over."""
    age = (clock.unix_ns() // _MS - request.queued_ms) / 1_000 if request.queued_ms else 0.0
    longest = min(max(age / 4, _FIRST_BACK), _LAST_BACK / 2)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  no secret hangs on it


def _letter(taken: Taken, why: str, tried: int, died_ms: int) -> Letter:
    return Letter(
        version=VERSION,
        id=taken.call_id,
        tool=taken.tool,
        tenant=taken.tenant,
        why=why,
        attempts=tried,
        died_ms=died_ms,
        message=taken.message,
    )


def _late(taken: Taken) -> Output:
    return _refused(
        taken,
        OutOfTime(
            f"{taken.tool!r} waited in the queue for longer than it may. It did not run: call it "
            "again if it is still wanted."
        ),
    )


def _undelivered(taken: Taken, why: str) -> Output:
    message = (
        f"No worker could run {taken.tool!r}: {why.rstrip('.')}. An operator can look at it, and "
        "have it tried again."
    )
    failure = Failure(code="undelivered", message=message)
    return Output(status="error", error=failure, call_id=taken.call_id)


def _lost(taken: Taken) -> Output:
    """Each worker that had it was gone before it could say how far it came."""
    message = (
        f"No worker could run {taken.tool!r}: it was taken {taken.attempts - 1} times and never "
        "came to an end. Whether it did anything is not known: check before you call it again. "
        "An operator can look at it."
    )
    failure = Failure(code="undelivered", message=message, details={"outcome": "unknown"})
    return Output(status="unknown", error=failure, call_id=taken.call_id)


def _refused(taken: Taken, error: ToolgateError) -> Output:
    failure = Failure(
        code=error.code, message=error.message, retryable=error.retryable, details=error.details
    )
    return Output(status="error", error=failure, call_id=taken.call_id)
