"""A call that goes on without the request that it came by: how it stands, and what it waits for."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec
import orjson

from toolgate import clock
from toolgate.server.mcp.answers import CALL_ID, KEY
from toolgate.server.mcp.exchange import DEAF, Back, Exchange, Peer
from toolgate.server.mcp.rpc import Fault, Params
from toolgate.spec.secret import secret_texts
from toolgate.spec.tool import ToolSpec

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
# What is still to come.
OPEN = frozenset({"working", "input_required"})
# How long a result can be had, and a question be answered.
TTL_MS = 3_600_000
POLL_MS = 1_000
TOKEN = "progressToken"  # noqa: S105  the protocol's name for what progress is told by
_PROGRESS = "notifications/progress"
# Where a tool's own words can stand.
_SAID = ("result", "error", "statusMessage", "inputRequests")


class Way:
    """The way back of a call that may become a task: to its request, and later into its task."""

    def __init__(self, back: Back, *, tells_progress: bool) -> None:
        self._back = back
        self._tells_progress = tells_progress
        self._last: Params | None = None
        self._task: Task | None = None

    def notify(self, method: str, params: Params) -> None:
        """A task has no stream: how far it has come stands in its status."""
        is_progress = method == _PROGRESS
        if is_progress:
            self._last = params
        if self._task is None and (self._tells_progress or not is_progress):
            self._back.notify(method, params)
        elif self._task is not None and is_progress:
            self._task.progressed(params)

    def leads_into(self, task: "Task") -> None:
        """From now on; what was told last stands there already."""
        self._task = task
        # Its stream is not held on to.
        self._back = DEAF
        if self._last is not None:
            task.progressed(self._last)

    async def ask(self, method: str, params: Params) -> Any:
        """Not on the way."""
        return await self._back.ask(method, params)


class Task:
    """One of them. Its results are kept as they are sent, and on the board without secrets."""

    def __init__(
        self,
        id_: str,
        exchange: Exchange,
        *,
        may_end: bool,
        key: str | None,
        spec: ToolSpec | None = None,
    ) -> None:
        self.id = id_
        self._output = None if spec is None else spec.output_schema
        self._redactor = exchange.gate.redactor
        if spec is not None:
            known = secret_texts(spec.input_schema.raw, exchange.params.get("arguments"))
            self._redactor = self._redactor.knowing(known)
        self.owner = exchange.peer.key.id
        self.tenant = exchange.peer.caller.tenant
        # Whether it changes nothing, and can be given up in the middle.
        self.may_end = may_end
        self.status: Status = "working"
        self.size = 0
        self.listeners: set[Callable[[Task], None]] = set()
        self.work: asyncio.Task[dict[str, Any]] | None = None
        # On the monotonic clock: since when it has stood as it stands.
        self.since_ns = clock.monotonic_ns()
        # As long as there may be another round.
        self._exchange: Exchange | None = exchange
        self._created_ns = self._updated_ns = clock.unix_ns()
        self._message = ""
        self._payload: dict[str, Any] = {}
        # What a second call would have to come with, to be this one.
        self._meta: dict[str, Any] = {} if key is None else {KEY: key}
        self._state = ""
        # By the names that the client sees: each stands for one question only, whatever the tool
        # calls it.
        self._asked: dict[str, tuple[str, Any]] = {}
        self._answers: dict[str, Any] = {}
        self._used: set[str] = set()

    @property
    def is_queued(self) -> bool:
        """Whether a worker has its call, or will: that goes on without this node."""
        return self.status == "working" and CALL_ID in self._meta

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.status not in OPEN

    def shown(self) -> dict[str, Any]:
        """All that there is to tell."""
        now_ns = clock.unix_ns() if self.status == "working" else self._updated_ns
        told: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _told(self._created_ns),
            "lastUpdatedAt": _told(self._updated_ns),
            "ttlMs": _ttl_ms(self._created_ns, now_ns),
            "pollIntervalMs": POLL_MS,
        }
        if self._message:
            told["statusMessage"] = self._message
        if self.status == "input_required":
            told["inputRequests"] = {name: asked for name, (_, asked) in self._asked.items()}
        return told | self._payload | ({"_meta": self._meta} if self._meta else {})

    def noted(self) -> dict[str, Any]:
        """The same, as the store may hold it."""
        shown = self.shown()
        raw = orjson.dumps({name: shown[name] for name in _SAID if name in shown})
        clean = self._redactor.raw(raw)
        return shown if clean is raw else shown | orjson.loads(clean)

    def progressed(self, params: Mapping[str, Any]) -> None:
        """How far its tool has come, or that its call waits for a worker."""
        call_id = params.get("_meta", {}).get(CALL_ID)
        if call_id:
            self.queued(call_id)
            return
        total, message = params.get("total"), params.get("message")
        count = f"{params['progress']}" + ("" if total is None else f" of {total}")
        self._message = f"{message} ({count})" if message else count
        # Nobody is told: a tool may say so a thousand times.
        self._updated_ns = clock.unix_ns()

    def queued(self, call_id: str) -> None:
        """Known to every node, and by that to who comes back when this one is gone."""
        if self._meta.get(CALL_ID) != call_id:
            self._meta[CALL_ID] = call_id
            self._message = f"queued as {call_id}"
            self._changed(self.status)

    def asks(self, result: Mapping[str, Any]) -> None:
        """It goes on once all of this is answered."""
        self._state = result["requestState"]
        self._answers = {}
        self._asked = {self._name(name): (name, one) for name, one in _asked(result).items()}
        self._message = ""
        self._changed("input_required")

    def answered(self, given: Mapping[str, Any]) -> bool:
        """Whether that was the last answer. What was not asked, or is answered, is left aside."""
        if self.status != "input_required":
            return False
        for name in given.keys() & self._asked.keys():
            own, _ = self._asked.pop(name)
            self._answers[own] = given[name]
        return not self._asked

    def again(self, peer: Peer | None) -> Exchange:
        """The next round: the same call, with the answers, for the key as it is now. Where they
        came by another node it is that of the first round; the gate knows how it stands today.
        """
        first = self._exchange
        assert first is not None  # noqa: S101  it is not over
        # What the client can be asked, it said when it made the call.
        whose = first.peer if peer is None else peer
        peer = msgspec.structs.replace(first.peer, key=whose.key, caller=whose.caller)
        more = {"inputResponses": self._answers, "requestState": self._state}
        self._changed("working")
        return msgspec.structs.replace(first, peer=peer, params=first.params | more)

    def completed(self, result: Mapping[str, Any]) -> None:
        """The tool has answered, be it with an error."""
        raw = orjson.dumps(result)
        self.size = len(raw)
        if self._output is not None:
            known = secret_texts(self._output.raw, _data(result))
            self._redactor = self._redactor.knowing(known)
        self._payload = {"result": orjson.Fragment(raw)}
        call_id = result.get("_meta", {}).get(CALL_ID)
        if call_id:
            self._meta[CALL_ID] = call_id
        self._message = ""
        self._over("completed")

    def failed(self, fault: Fault) -> None:
        """No tool has answered."""
        error: dict[str, Any] = {"code": fault.code, "message": fault.message}
        if fault.data is not None:
            error["data"] = fault.data
        self._payload = {"error": error}
        self._message = fault.message
        self._over("failed")

    def cancelled(self) -> None:
        """Somebody has given it up."""
        self._message = ""
        self._over("cancelled")

    def runs_on(self) -> None:
        """Somebody has given up what has to come to its end."""
        self._message = "It has been asked to end. A side effect runs to its end once it has begun."
        self._changed("working")

    def follow(self, tell: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        """Tell how it stands, now and whenever that changes, until what comes back is called."""

        def told(task: Task) -> None:
            tell(task.shown())

        self.listeners.add(told)
        # It may have changed since its client looked.
        tell(self.shown())
        return lambda: self.listeners.discard(told)

    def _name(self, name: str) -> str:
        found, count = name, 1
        while found in self._used:
            count += 1
            found = f"{name}.{count}"
        self._used.add(found)
        return found

    def _over(self, status: Status) -> None:
        self._asked, self._answers, self._state, self._exchange = {}, {}, "", None
        self._changed(status)
        self.listeners.clear()

    def _changed(self, status: Status) -> None:
        self.status = status
        self._updated_ns = clock.unix_ns()
        self.since_ns = clock.monotonic_ns()
        for tell in tuple(self.listeners):
            tell(self)


def dated(shown: Mapping[str, Any], alive_ns: int, changed_ns: int | None = None) -> dict[str, Any]:
    """A task as another node told of it, which was still there at that time."""
    told = {**shown, "ttlMs": _ttl_ms(_created_ns(shown), alive_ns)}
    return told if changed_ns is None else told | {"lastUpdatedAt": _told(changed_ns)}


def is_past(shown: Mapping[str, Any]) -> bool:
    """Whether it is as old as was said that it can get."""
    return clock.unix_ns() > _created_ns(shown) + shown["ttlMs"] * 1_000_000


def _ttl_ms(created_ns: int, alive_ns: int) -> int:
    """It counts from the start, and what is over is kept that long after its end."""
    return max(0, alive_ns - created_ns) // 1_000_000 + TTL_MS


def _created_ns(shown: Mapping[str, Any]) -> int:
    return clock.unix_of(datetime.fromisoformat(shown["createdAt"]))


def _data(result: Mapping[str, Any]) -> Any:
    """What the tool gave, also where it is told as a text alone."""
    if "structuredContent" in result:
        return result["structuredContent"]
    texts = [one["text"] for one in result.get("content", ()) if one.get("type") == "text"]
    try:
        return [orjson.loads(text) for text in texts]
    except orjson.JSONDecodeError:
        return texts


def _asked(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return result["inputRequests"]


def _told(at_ns: int) -> str:
    return clock.moment_of(at_ns).isoformat(timespec="milliseconds").replace("+00:00", "Z")
