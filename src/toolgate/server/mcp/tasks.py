"""The Tasks extension: a call that takes long is answered with a task, and goes on by itself.

A task runs at the node that made it; how it stands is on the board, so that any node can tell, and
what is said to another one is passed on to it by a letter. To any other key it is not there.
"""

import asyncio
import contextlib
import logging
import secrets
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import msgspec

from toolgate import clock
from toolgate.runtime import Runtime
from toolgate.server.mcp.answers import CALL_ID, KEY, STATUS, stamped
from toolgate.server.mcp.awaited import Awaited
from toolgate.server.mcp.board import Board, Noted
from toolgate.server.mcp.exchange import Exchange, Peer
from toolgate.server.mcp.faults import fault_of
from toolgate.server.mcp.line import answers_of
from toolgate.server.mcp.orphans import Orphans
from toolgate.server.mcp.post import Post
from toolgate.server.mcp.rpc import INVALID_PARAMS, MISSING_CAPABILITY, Fault, text
from toolgate.server.mcp.task import OPEN, TOKEN, TTL_MS, Task, Way
from toolgate.server.mcp.tools import TURN_GROUP, Calls
from toolgate.server.mcp.watched import Watched
from toolgate.spec.effect import Effect
from toolgate.spec.tool import ToolSpec

log = logging.getLogger("toolgate.server")
EXTENSION = "io.modelcontextprotocol/tasks"
DECLARED: Mapping[str, Any] = MappingProxyType({EXTENSION: {}})
METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
# How long a client waits for an answer before it gets a task.
AFTER = 1.0
MOST = 10_000
MOST_OF_KEY = 1_000
# Of all results that are kept.
MOST_BYTES = 256 * 1024 * 1024
_MOST_HEARD = 256


class Tasks:
    """All of this process. Where there is no room for another, its call is waited for."""

    def __init__(
        self,
        calls: Calls,
        post: Post,
        orphans: Orphans,
        awaited: Awaited,
        *,
        after: float = AFTER,
    ) -> None:
        self._calls = calls
        self._awaited = awaited
        # Those whose call waits for a worker for longer than an answer is waited for.
        self._waiting: set[asyncio.Task[dict[str, Any]]] = set()
        self._closing = False
        self._post = post
        self._board = Board(post, orphans)
        post.on("task", self._said)
        self._after = after
        self._all: dict[str, Task] = {}
        self._of_key: Counter[str] = Counter()
        self._bytes = 0
        # What is over, or waits for answers, by how long it has.
        self._resting: deque[tuple[int, Task]] = deque()
        self._running: dict[asyncio.Task[Any], bool] = {}
        self._expecting: dict[str, ExitStack] = {}

    def __len__(self) -> int:
        return len(self._all)

    async def call(self, exchange: Exchange) -> dict[str, Any]:
        """The result of a call, or a task where that takes long."""
        is_pure = self._is_pure(exchange)
        way = Way(exchange.back, tells_progress=TOKEN in exchange.meta)
        meta = {TOKEN: "", **exchange.meta} if is_pure else {TOKEN: "", **_keyed(exchange)}
        exchange = msgspec.structs.replace(exchange, back=way, meta=meta)
        work = self._begin(exchange, may_end=is_pure)
        try:
            await _soon_over(work, self._after)
            if not work.done() and not self._has_room(exchange.peer.key.id):
                await asyncio.wait((work,))
        except asyncio.CancelledError:
            if is_pure:
                work.cancel()
            raise
        if work.done():
            return work.result()
        task = self._made(exchange, may_end=is_pure)
        way.leads_into(task)
        self._follow(task, work)
        await self._board.put(task)
        shown = task.shown()
        return stamped(shown, shown.get("_meta", {}), modern=True) | {"resultType": "task"}

    async def get(self, exchange: Exchange) -> dict[str, Any]:
        """How a task stands; its result, once there is one."""
        found = await self._found(exchange)
        shown = found.shown if isinstance(found, Noted) else found.shown()
        return stamped(shown, shown.get("_meta", {}), modern=True)

    async def update(self, exchange: Exchange) -> dict[str, Any]:
        """Answers to what it asks. With the last of them it goes on."""
        task = await self._found(exchange)
        if type(exchange.params.get("inputResponses")) is not dict:
            raise Fault(INVALID_PARAMS, "'inputResponses' are answers by the names of what asks.")
        given = answers_of(exchange.params)
        if isinstance(task, Noted):
            id_ = text(exchange.params, "taskId")
            await self._board.answered(exchange.peer, id_, task, given)
            await self._passed_on(exchange, task, {"answers": given})
        else:
            self._answer(task, given, exchange.peer)
        return stamped({}, modern=True)

    async def cancel(self, exchange: Exchange) -> dict[str, Any]:
        """Give a task up: what changes nothing ends, and what has not begun. A side effect that may
        have begun runs to its end: nobody could say how far it got.
        """
        task = await self._found(exchange)
        if isinstance(task, Noted):
            await self._passed_on(exchange, task, {"cancel": True})
        else:
            self._give_up(task)
        return stamped({}, modern=True)

    async def of(self, peer: Peer, ids: Sequence[Any]) -> list[Task | Watched]:
        """Those of them that are the key's: they can be listened to."""
        declared(peer)
        found: dict[str, Task | Watched] = {}
        for id_ in ids[:_MOST_HEARD]:
            one = self._of(peer, id_)
            if one is not None:
                found[one.id] = one
            elif type(id_) is str and await self._board.find(peer, id_) is not None:
                found[id_] = Watched(id_, partial(self._board.find, peer, id_))
        return list(found.values())

    async def close(self, gate: Runtime, patience: float) -> None:
        """The house closes. Nobody can ask any more: what changes nothing ends, and side effects
        come to their end, as long as there is time for it. What a worker has goes on.
        """
        self._closing = True
        for work, may_end in self._running.items():
            if may_end:
                work.cancel()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=patience)
        if count := sum(not may_end for may_end in self._running.values()):
            log.warning("%d tasks were not over; how their calls ended is on record", count)
            await gate.finish(0)
            await asyncio.wait(tuple(self._running), timeout=1)
        for waiting in tuple(self._waiting):
            waiting.cancel()
        await self._awaited.close()
        # What was done for a task is told by it, wherever it is asked about now.
        await asyncio.sleep(0)
        await self._board.close()

    async def _said(self, letter: Mapping[str, Any]) -> None:
        """What the client of one of our tasks has said at another node."""
        task = self._all.get(letter["id"])
        if task is None or task.owner != letter["key"]:
            return
        if letter.get("cancel"):
            self._give_up(task)
        else:
            self._answer(task, letter["answers"], None)

    async def _passed_on(self, exchange: Exchange, noted: Noted, what: Mapping[str, Any]) -> None:
        id_, key = text(exchange.params, "taskId"), exchange.peer.key.id
        if noted.shown["status"] in OPEN:
            await self._post.send(noted.node, "task", {"id": id_, "key": key, **what})

    def _answer(self, task: Task, given: Mapping[str, Any], peer: Peer | None) -> None:
        if task.answered(given):
            self._follow(task, self._begin(task.again(peer), may_end=task.may_end))

    def _give_up(self, task: Task) -> None:
        if task.status == "input_required" or (task.may_end and not task.is_over):
            task.cancelled()
            self._rests(task)
            if task.work is not None:
                task.work.cancel()
                task.work = None
        elif not task.is_over:
            task.runs_on()

    def _begin(self, exchange: Exchange, *, may_end: bool) -> asyncio.Task[dict[str, Any]]:
        work = asyncio.create_task(self._calls.call(exchange), name="toolgate-mcp-call")
        self._running[work] = may_end
        work.add_done_callback(self._ended)
        return work

    def _ended(self, work: asyncio.Task[dict[str, Any]]) -> None:
        del self._running[work]
        if not work.cancelled():
            # Whoever asked may have gone away meanwhile.
            work.exception()

    def _follow(self, task: Task, work: asyncio.Task[dict[str, Any]]) -> None:
        task.work = work
        work.add_done_callback(partial(self._over, task))

    def _over(self, task: Task, work: asyncio.Task[dict[str, Any]]) -> None:
        if task.is_over:
            return
        if work.cancelled() and self._closing and task.is_queued:
            return
        error = None if work.cancelled() else work.exception()
        if work.cancelled():
            task.cancelled()
        elif error is not None:
            task.failed(fault_of(error, "tools/call"))
        elif work.result()["resultType"] == "input_required":
            task.asks(work.result())
        elif (meta := work.result().get("_meta", {})).get(STATUS) == "queued":
            self._wait(task, meta[CALL_ID])
            return
        else:
            task.completed(work.result())
        task.work = None
        self._bytes += task.size
        self._rests(task)

    def _wait(self, task: Task, call_id: str) -> None:
        """Nobody waits for its answer any more, and it is still to run."""
        task.queued(call_id)
        task.work = asyncio.create_task(self._awaited.result(call_id), name="toolgate-mcp-waiting")
        self._waiting.add(task.work)
        task.work.add_done_callback(self._waiting.discard)
        task.work.add_done_callback(partial(self._over, task))

    def _rests(self, task: Task) -> None:
        if task.is_over:
            self._left(task)
        self._resting.append((task.since_ns, task))

    def _made(self, exchange: Exchange, *, may_end: bool) -> Task:
        id_ = secrets.token_urlsafe(24)
        # A key that goes with a call makes the next one the same call.
        key = None if may_end else exchange.meta.get(KEY)
        spec = self._spec(exchange)
        task = self._all[id_] = Task(id_, exchange, may_end=may_end, key=key, spec=spec)
        self._of_key[task.owner] += 1
        # As long as it is open its client may say something at another node.
        self._expecting[id_] = ExitStack()
        self._expecting[id_].enter_context(self._post.expecting())
        return task

    def _left(self, task: Task) -> None:
        waits = self._expecting.pop(task.id, None)
        if waits is not None:
            waits.close()

    def _has_room(self, key_id: str) -> bool:
        self._sweep()
        is_full = len(self._all) >= MOST or self._bytes >= MOST_BYTES
        return not is_full and self._of_key[key_id] < MOST_OF_KEY

    def _sweep(self) -> None:
        oldest = clock.monotonic_ns() - TTL_MS * 1_000_000
        while self._resting and self._resting[0][0] <= oldest:
            since_ns, task = self._resting.popleft()
            # It may have gone on since.
            if task.since_ns == since_ns and task.status != "working":
                del self._all[task.id]
                self._left(task)
                self._bytes -= task.size
                self._of_key[task.owner] -= 1
                if not self._of_key[task.owner]:
                    del self._of_key[task.owner]

    async def _found(self, exchange: Exchange) -> Task | Noted:
        declared(exchange.peer)
        id_ = text(exchange.params, "taskId")
        task = self._of(exchange.peer, id_) or await self._board.find(exchange.peer, id_)
        if task is None:
            raise Fault(
                INVALID_PARAMS,
                "There is no such task: it is another key's, or too old. What a side effect did is "
                "in the ledger.",
            )
        return task

    def _of(self, peer: Peer, id_: Any) -> Task | None:
        self._sweep()
        task = self._all.get(id_) if type(id_) is str else None
        return task if task is not None and task.owner == peer.key.id else None

    def _is_pure(self, exchange: Exchange) -> bool:
        with contextlib.suppress(Fault):
            _, spec = self._calls.meant(exchange)
            return spec is not None and spec.effect is Effect.PURE
        # It is refused anyway.
        return True

    def _spec(self, exchange: Exchange) -> ToolSpec | None:
        with contextlib.suppress(Fault):
            return self._calls.meant(exchange)[1]
        return None


def takes_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client has said that it takes tasks."""
    extensions = capabilities.get("extensions")
    return type(extensions) is dict and EXTENSION in cast("dict[str, Any]", extensions)


def declared(peer: Peer) -> None:
    """Only who takes tasks can ask for them."""
    if not takes_tasks(peer.capabilities):
        raise Fault(
            MISSING_CAPABILITY,
            f"Say in '_meta' that you take tasks: {EXTENSION!r} in the client's extensions.",
            {"requiredCapabilities": {"extensions": dict(DECLARED)}},
        )


async def _soon_over(work: asyncio.Task[Any], seconds: float) -> None:
    """Until it is over, or so long. `asyncio.wait` does this too, and takes as long as a call."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiting.done():
            waiting.set_result(None)

    timer = loop.call_later(seconds, wake)
    work.add_done_callback(wake)
    try:
        await waiting
    finally:
        timer.cancel()


def _keyed(exchange: Exchange) -> Mapping[str, Any]:
    """A side effect with a key from its start: whoever loses sight of its task can call again with
    it, and never makes it happen twice.
    """
    meta = exchange.meta
    if KEY in meta or TURN_GROUP in meta or "requestState" in exchange.params:
        return meta
    return {**meta, KEY: f"mcp.{secrets.token_urlsafe(18)}"}
