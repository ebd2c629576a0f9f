"""A call that a worker runs: put into the queue, and its answer waited for."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any, Self

from toolgate import clock
from toolgate.call import Call, Failure, Output
from toolgate.crash import crash_here
from toolgate.errors import Overloaded, StoreError
from toolgate.executor.extension import Extension, Handler
from toolgate.executor.recording import entries
from toolgate.ledger.history import owner_of
from toolgate.queue.message import order_of, read_output, request_of, written
from toolgate.queue.queue import Item, Queue
from toolgate.spec.effect import Effect, Execution

_log = logging.getLogger("toolgate.queue")
# What it takes to be put into the queue, beside the time that it is waited for.
_MARGIN = 5.0
_MARGIN_NS = 5_000_000_000
_LAST_NS = 200_000_000
_AT_ONCE = 500
_AGAIN = 1.0
# Who waits holds a connection: so many of a tenant, and of all. The rest ask by the id.
_MOST_OF_TENANT = 256
_MOST_WAITING = 512
Place = Callable[[str], contextlib.AbstractContextManager[bool]]


def patience(wait_s: float | None, seconds: float) -> float:
    """How long whoever calls is held: as they say, else as long as the call may take."""
    return (seconds if wait_s is None else wait_s) + _MARGIN


class Answers:
    """Who waits in this process for which call, and how they are told."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Output]] = {}
        self._someone = asyncio.Event()
        self._resting = False

    def rest(self, runs: Callable[[str], bool]) -> None:
        """Nobody here takes a call any more: who waits for one that does not run is told so."""
        self._resting = True
        for call_id, waiting in self._waiting.items():
            if not runs(call_id):
                waiting.cancel()

    async def part(self) -> None:
        """Nobody is waited for any more: who waits is told that it is queued, and has gone."""
        self.rest(lambda _call_id: False)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_AGAIN):
                while self._waiting:  # noqa: ASYNC110  they tell nobody
                    await asyncio.sleep(0)

    def give(self, call_id: str, output: Output) -> bool:
        """It has ended so; whether anybody here waits for it."""
        waiting = self._waiting.get(call_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(output)
        return True

    def awaits(self, call_id: str) -> bool:
        """Whether anybody here waits for it."""
        return call_id in self._waiting

    @contextlib.contextmanager
    def expected(self, call_id: str) -> Any:
        """The answer, from before the call can be taken on."""
        answer: asyncio.Future[Output] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = answer
        self._someone.set()
        if self._resting:
            answer.cancel()
        try:
            yield answer
        finally:
            del self._waiting[call_id]

    async def look_for(self, queue: Queue, every: float) -> None:
        """Ask the queue now and then, until cancelled: what tells of an end can get lost."""
        while True:
            if not self._waiting:
                self._someone.clear()
                await self._someone.wait()
            await asyncio.sleep(every)
            wanted = list(self._waiting)
            try:
                for start in range(0, len(wanted), _AT_ONCE):
                    for kept in await queue.over(wanted[start : start + _AT_ONCE]):
                        self.give(kept.call_id, read_output(kept.output))
            except StoreError as error:
                _log.warning("answers wait: %s", error)
                await asyncio.sleep(_AGAIN)


@contextlib.contextmanager
def any_place(_tenant: str) -> Generator[bool]:
    """Where nobody counts."""
    yield True


class Queued(Extension):
    """Puts calls of queued tools into the queue. One that a worker brings goes on instead."""

    priority = 225

    def __init__(
        self,
        queue: Queue,
        answers: Answers,
        *,
        expires: float,
        place: Place = any_place,
        woken: Callable[[], object] = lambda: None,
        trace: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`place`: whether a tenant has one more, held until its call is queued. `woken`: told that
        there is something new. `trace`: the headers of the current one.
        """
        self._queue = queue
        self._answers = answers
        self._expires_ns = round(expires * 1e9)
        self._place = place
        self._woken = woken
        self._trace = trace
        self._first: tuple[Extension, ...] = ()
        self._waiting = Counter[str]()

    def behind(self, *links: Extension) -> Self:
        """A call that is queued passes these first: what they need stays where it came in."""
        self._first = links
        return self

    def link(self, inner: Handler) -> Handler:
        """What takes a call back is not put behind others."""
        handed, is_queued = self._handed, Execution.QUEUED
        for one in self._first[::-1]:
            handed = one.link(handed)

        # Not a coroutine of its own: a call that is not queued does not pay for one.
        def run(call: Call) -> Coroutine[Any, Any, Output]:
            if call.grant.spec.execution is not is_queued:
                return inner(call)
            asked = call.asked
            return inner(call) if asked.delivered or asked.undo_of else handed(call)

        return run

    async def _handed(self, call: Call) -> Output:
        with self._answers.expected(call.id) as answer:
            with self._place(call.caller.tenant) as is_free:
                if not is_free:
                    raise Overloaded(
                        f"So many calls are queued that {call.spec.name!r} cannot be. Nothing ran: "
                        "try again in a moment.",
                        retry_after=1,
                    )
                call, _raw = entries.settled(call)
                lost = await self._put(call, self._item(call))
            if lost is not None:
                return lost
            crash_here("CP15")
            self._woken()
            if call.asked.line is not None:
                call.asked.line.queued(call.id)
            await self._waited(call, answer)
            is_told = answer.done() and not answer.cancelled()
            return answer.result() if is_told else still_queued(call)

    async def _waited(self, call: Call, answer: asyncio.Future[Output]) -> None:
        """As long as the caller likes; not at all where too many do."""
        waiting, tenant, left_ns = self._waiting, call.caller.tenant, _left_ns(call)
        is_full = waiting[tenant] >= _MOST_OF_TENANT or waiting.total() >= _MOST_WAITING
        if left_ns <= 0 or is_full:
            return
        waiting[tenant] += 1
        try:
            # A wait that ends does not take the answer with it.
            await asyncio.wait((answer,), timeout=left_ns / 1e9)
        finally:
            waiting[tenant] -= 1
            if not waiting[tenant]:
                del waiting[tenant]

    def _item(self, call: Call) -> Item:
        own = call.spec.queue_expires
        expires_ns = self._expires_ns if own is None else min(round(own * 1e9), self._expires_ns)
        expires_ns += call.started_ns
        if call.parent_ns:
            expires_ns = min(expires_ns, call.parent_ns)
        return Item(
            call_id=call.id,
            tenant=call.caller.tenant,
            tool=call.spec.name,
            agent=call.caller.agent,
            user=call.caller.user,
            scope=owner_of(call.caller),
            order=order_of(call),
            message=written(request_of(call, expires_ns=expires_ns, trace=self._trace())),
            expires_ns=expires_ns,
        )

    async def _put(self, call: Call, item: Item) -> Output | None:
        """Nothing once it is queued, or the answer where nobody can tell."""
        try:
            await self._queue.put(item)
        except StoreError:
            if call.spec.effect is Effect.PURE:
                raise
            try:
                found = await self._queue.find(item.tenant, item.call_id)
            except StoreError:
                return _unknown(call)
            if found is None:
                raise
        return None


def _left_ns(call: Call) -> int:
    """For how long it is still waited for."""
    left_ns = call.until_ns - clock.monotonic_ns()
    if not call.parent_ns or call.parent_ns > call.started_ns + call.until_ns - call.began_ns:
        return left_ns - _MARGIN_NS
    # The call around it is over first, and has to be told by then.
    wait_s, left_ns = call.asked.wait_s, left_ns - _LAST_NS
    return left_ns if wait_s is None else min(left_ns, round(wait_s * 1e9))


def still_queued(call: Call) -> Output:
    """What whoever does not wait for it is told."""
    return _told(
        call,
        "queued",
        "queued",
        f"{call.spec.name!r} is queued as {call.id} and will run. It is not done yet: ask for its "
        "result by this id, and do not call it again.",
    )


def _unknown(call: Call) -> Output:
    return _told(
        call,
        "unknown",
        "outcome_unknown",
        f"The store went away while {call.spec.name!r} was queued as {call.id}: it may run. Ask "
        "for its result by this id before you call it again.",
    )


def _told(call: Call, status: Any, code: str, message: str) -> Output:
    return Output(
        status=status,
        error=Failure(code=code, message=message, details={"call_id": call.id}),
        call_id=call.id,
        duration_ms=(clock.monotonic_ns() - call.began_ns) / 1e6,
        side_effects=call.spec.side_effects,
    )
