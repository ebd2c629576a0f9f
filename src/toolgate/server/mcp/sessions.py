"""Sessions of the older revision: what a client said at its start, and its streams.

What began a session is in its id, so that any node goes on with it; its streams, and what runs in
it, are where they began.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import Overloaded
from toolgate.server.mcp.exchange import Peer
from toolgate.server.mcp.hearing import Hearing
from toolgate.server.mcp.kept import MOST_OF_KEY, MOST_OF_SESSION, Kept
from toolgate.server.mcp.passport import Passports, name_of
from toolgate.server.mcp.rpc import INTERNAL_ERROR, Fault, Params, request
from toolgate.server.mcp.sse import Stream
from toolgate.tenancy.keys import Key

_IDLE_NS = 3_600 * 10**9
_MOST = 10_000
_MOST_OF_KEY = 1_000
_MOST_STREAMS = 64
# What the stream beside the answers is called.
BESIDE = "s"
# How long a client may take to answer what it was asked.
PATIENCE = 600.0


class Session:
    """One client's. `kept` is what all sessions of its key keep together; `node` stands in the ids
    of what only this node can go on with, and `question` makes those of what the client is asked.
    """

    def __init__(
        self,
        id_: str,
        peer: Peer,
        kept: Kept | None = None,
        *,
        node: str = "",
        question: Callable[[], str] = lambda: f"tg-{secrets.token_hex(8)}",
    ) -> None:
        self.id = id_
        self.name = name_of(id_)
        self.peer = peer
        self._node = node
        self._question = question
        self.log_level = ""
        self.subscribed: set[str] = set()
        # What it hears of other servers, while it listens.
        self.hearing: Hearing | None = None
        self.seen_ns = clock.monotonic_ns()
        # How many letters were sent for it that every node reads.
        self.letters = 0
        # When it was last looked at how it stands on other nodes.
        self.looked_ns = self.seen_ns
        # What it asked for and waits for, by the ids that it gave, and whether that can be ended.
        self.running: dict[str | int, tuple[asyncio.Task[Any], bool]] = {}
        # What it hears beside its answers.
        self.beside = Stream(f"{node}{BESIDE}")
        self._streams: OrderedDict[str, Stream] = OrderedDict()
        self._kept = Kept(MOST_OF_SESSION)
        self._kept_of_key = Kept(MOST_OF_KEY) if kept is None else kept
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._is_hushed = False
        self._number = 0

    @property
    def is_heard(self) -> bool:
        """Whether somebody reads what it hears beside its answers."""
        return self.beside.is_read

    def stream(self) -> Stream:
        """A new one; of those that are over, the newest are kept for who comes back."""
        self._number += 1
        made = Stream(f"{self._node}-{self._number}" if self._node else f"{self._number}")
        self._streams[made.id] = made
        if len(self._streams) > _MOST_STREAMS:
            over = next((one for one in self._streams.values() if one.is_closed), None)
            if over is not None:
                self.forget(over)
        return made

    def over(self, stream: Stream) -> None:
        """No more will come on it: it is kept, as long as there is room."""
        stream.close()
        if stream.id in self._streams:
            self._kept.add(stream, self.forget, spare=True)
            self._kept_of_key.add(stream, self.forget)

    def forget(self, stream: Stream) -> None:
        """Nobody can come back to it."""
        self._streams.pop(stream.id, None)
        self._kept.discard(stream)
        self._kept_of_key.discard(stream)

    def find(self, stream_id: str) -> Stream | None:
        """One of its streams; an id that names no node is of this one."""
        is_beside = stream_id in {self.beside.id, BESIDE}
        return self.beside if is_beside else self._streams.get(stream_id)

    async def ask(self, stream: Stream, method: str, params: Params) -> Any:
        """A request to the client, on one of its streams, and its answer."""
        if self._is_hushed:
            raise _too_late()
        id_ = self._question()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[id_] = answer
        try:
            stream.put(request(id_, method, params))
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError:
            raise Fault(INTERNAL_ERROR, "The client did not answer in time.") from None
        finally:
            del self._asked[id_]

    def answered(self, id_: str, result: Any, *, failed: bool) -> bool:
        """An answer of the client's; whether anybody waits for it here."""
        waiting = self._asked.get(id_)
        if waiting is None or waiting.done():
            return False
        if failed:
            waiting.set_exception(Fault(INTERNAL_ERROR, "The client could not answer."))
        else:
            waiting.set_result(result)
        return True

    def hush(self) -> None:
        """Nothing is told beside its answers any more, and its client is asked nothing: what it
        says could no longer arrive. What runs is still answered on its own stream.
        """
        self._is_hushed = True
        self.beside.close()
        for one in self._asked.values():
            if not one.done():
                one.set_exception(_too_late())

    def close(self) -> None:
        """Nobody will come back."""
        self.beside.close()
        for stream in tuple(self._streams.values()):
            stream.close()
            self.forget(stream)
        for one in self._asked.values():
            one.cancel()


class Sessions:
    """All of this process. An id is worth something only with the key that it was given to."""

    def __init__(self, passports: Passports, node: str = "") -> None:
        self._passports = passports
        self._node = node
        # The one that was used last stands last.
        self._all: OrderedDict[str, Session] = OrderedDict()
        self._named: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._is_hushed = False
        # By key, as long as it has a session.
        self._kept: WeakValueDictionary[str, Kept] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._all)

    def open(self, peer: Peer) -> Session:
        """A new one."""
        id_ = self._passports.issue(peer.version, peer.capabilities, peer.key.id)
        return self._made(id_, peer)

    def restored(self, id_: str, key: Key, caller: Caller) -> Session | None:
        """One that began at another node, or that was idle for long."""
        holder = self._passports.read(id_, key.id)
        if holder is None:
            return None
        return self._made(id_, Peer(key, caller, holder.version, holder.capabilities))

    def named(self, name: str) -> Session | None:
        """One that is here, whosever it is: for other nodes, not for clients."""
        return self._named.get(name)

    def _made(self, id_: str, peer: Peer) -> Session:
        self._sweep()
        of_key = [one for one in self._all.values() if one.peer.key.id == peer.key.id]
        if len(of_key) >= _MOST_OF_KEY or len(self._all) >= _MOST:
            raise Overloaded(
                "Too many sessions are open: end some, or use the newer revision, which has none.",
                retry_after=60,
            )
        kept = self._kept.setdefault(peer.key.id, Kept(MOST_OF_KEY))
        # What is done in one session belongs together, for policies that look back.
        whose = msgspec.structs.replace(peer.caller, session=name_of(id_))
        peer = msgspec.structs.replace(peer, session=name_of(id_), caller=whose)
        question = partial(self._passports.question, self._node, name_of(id_))
        made = Session(id_, peer, kept, node=self._node, question=question)
        self._all[id_] = made
        self._named[made.name] = made
        if self._is_hushed:
            made.hush()
        return made

    def find(self, id_: str, key_id: str) -> Session | None:
        """A session of this key."""
        found = self._all.get(id_)
        if found is None or found.peer.key.id != key_id:
            return None
        found.seen_ns = clock.monotonic_ns()
        self._all.move_to_end(id_)
        return found

    def end(self, session: Session) -> None:
        """The client said goodbye."""
        if self._all.pop(session.id, None) is not None:
            session.close()

    def hush(self) -> None:
        """The house is about to close: nobody listens any more, also who comes only now."""
        self._is_hushed = True
        for session in self._all.values():
            session.hush()

    def close(self) -> None:
        """The house closes."""
        while self._all:
            self._all.popitem()[1].close()

    def heard(self) -> list[Session]:
        """Those that listen beside their answers."""
        return [one for one in self._all.values() if one.is_heard]

    def _sweep(self) -> None:
        oldest = clock.monotonic_ns() - _IDLE_NS
        for session in list(self._all.values()):
            if session.seen_ns > oldest:
                return
            if not session.running and not session.is_heard:
                self.end(session)


def _too_late() -> Fault:
    return Fault(
        INTERNAL_ERROR, "This server is about to end, and waits for no answer of the client's."
    )
