"""How tasks stand, where every node can see it.

The node that runs a task writes here whenever it changes, and now and then that it still runs. Of a
node that says nothing for long nobody waits for an answer, unless a worker has the call.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from toolgate import clock
from toolgate.errors import StoreError
from toolgate.server.mcp.exchange import Peer
from toolgate.server.mcp.orphans import Orphans
from toolgate.server.mcp.post import Post
from toolgate.server.mcp.rpc import INTERNAL_ERROR
from toolgate.server.mcp.task import OPEN, TTL_MS, Task, is_past
from toolgate.shelf import Place, Shelf, Thing

KIND = "mcp.tasks"
# So often a node says of its tasks that they go on; so long nothing is said of one that was lost.
BEAT = 5.0
GONE_NS = 30 * 10**9
_GONE = (
    "The node that ran it is gone. What a side effect did is in the ledger: call it again with the "
    "toolgate/idempotencyKey of this task, and it happens once. Anything else can be called anew."
)


class Noted(msgspec.Struct, frozen=True):
    """A task, as another node knows it."""

    node: str
    shown: dict[str, Any]
    revision: int = 0


class Board:
    """Of one node; without a shelf it is bare."""

    def __init__(self, post: Post, orphans: Orphans) -> None:
        self._post = post
        self._orphans = orphans
        self._open: dict[str, Task] = {}
        self._changed: dict[str, Task] = {}
        self._news = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        post.sweeps(KIND, TTL_MS * 1_000_000, unless=self._lasts)

    async def put(self, task: Task) -> None:
        """A new one, before its client hears of it."""
        shelf = self._post.shelf
        if shelf is None:
            return
        self._open[task.id] = task
        task.listeners.add(self._told)
        with suppress(StoreError):
            await shelf.put(_place(task.tenant, task.owner), [self._thing(task)])
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(shelf), name="toolgate-mcp-board")

    async def find(self, peer: Peer, id_: str) -> Noted | None:
        """A task of this key, at another node."""
        shelf = self._post.shelf
        if shelf is None:
            return None
        thing = await shelf.get(_place(peer.caller.tenant, peer.key.id), id_)
        if thing is None:
            return None
        node, shown = thing.body["node"], thing.body["shown"]
        if node == self._post.node:
            # What this node still has, it has at hand.
            return None
        if shown["status"] in OPEN and clock.unix_ns() - thing.updated_ns > GONE_NS:
            shown = await self._orphans.told(peer.caller.tenant, shown) or _failed(shown)
        return None if is_past(shown) else Noted(node, shown, thing.revision)

    async def answered(self, peer: Peer, id_: str, noted: Noted, given: Mapping[str, Any]) -> None:
        """What is answered is not asked again, also before its node has read the answers."""
        shelf, asked = self._post.shelf, noted.shown.get("inputRequests", {})
        left = {name: one for name, one in asked.items() if name not in given}
        if shelf is None or len(left) == len(asked):
            return
        shown = noted.shown | {"inputRequests": left}
        if not left:
            del shown["inputRequests"]
            shown["status"] = "working"
        thing = Thing(key=id_, body={"node": noted.node, "shown": shown}, revision=noted.revision)
        await shelf.change(_place(peer.caller.tenant, peer.key.id), thing)

    async def close(self) -> None:
        """All that is left is written, unless the store is away."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writing
            if self._post.shelf is not None:
                await self._flush(self._post.shelf)

    async def _lasts(self, place: Place, thing: Thing) -> bool:
        """Whether its call goes on, or ended only lately, however old its node's last word is."""
        shown = thing.body["shown"]
        if shown["status"] not in OPEN:
            return False
        told = await self._orphans.told(place.tenant, shown)
        return told is not None and not is_past(told)

    def _told(self, task: Task) -> None:
        self._changed[task.id] = task
        if task.is_over:
            self._open.pop(task.id, None)
        self._news.set()

    async def _write(self, shelf: Shelf) -> None:
        while self._open or self._changed:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT):
                    await self._news.wait()
            if not self._news.is_set():
                self._changed |= self._open
            self._news.clear()
            await self._flush(shelf)
        self._writing = None

    async def _flush(self, shelf: Shelf) -> None:
        places: dict[Place, list[Task]] = defaultdict(list)
        changed, self._changed = self._changed, {}
        for task in changed.values():
            places[_place(task.tenant, task.owner)].append(task)
        for place, tasks in places.items():
            try:
                await shelf.put(place, [self._thing(task) for task in tasks])
            except StoreError:
                self._changed = {task.id: task for task in tasks} | self._changed

    def _thing(self, task: Task) -> Thing:
        return Thing(key=task.id, body={"node": self._post.node, "shown": task.noted()})


def _failed(shown: Mapping[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in shown.items() if name != "inputRequests"}
    error = {"code": INTERNAL_ERROR, "message": _GONE}
    return left | {"status": "failed", "statusMessage": _GONE, "error": error}


def _place(tenant: str, key_id: str) -> Place:
    return Place(tenant, KIND, key_id)
