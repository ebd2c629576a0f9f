"""The port to what keeps queued calls: the truth about them, whatever carries them to a worker."""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

NOBODY: frozenset[str] = frozenset()


class Stage(StrEnum):
    """How far a queued call has come."""

    WAITING = "waiting"  # to be sent, or to be taken
    SENT = "sent"  # a broker has it
    TAKEN = "taken"  # a worker has it, until its lease ends
    DONE = "done"
    DEAD = "dead"  # tried too often, or by nobody to be understood


OPEN = frozenset({Stage.WAITING, Stage.SENT, Stage.TAKEN})


def is_call(call_id: str) -> bool:
    """Whether it names a call: one of a message that is none says where that lay."""
    return "/" not in call_id


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is put into the queue. `scope` says whose it is, `order` what it waits behind."""

    call_id: str
    tenant: str
    tool: str
    agent: str
    user: str
    scope: str
    order: str
    message: bytes
    expires_ns: int


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A call that this worker has now. `attempts` counts this one, `late`: its time is over."""

    call_id: str
    tenant: str
    tool: str
    message: bytes
    fence: int
    attempts: int
    late: bool


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A queued call as it stands. `output` is there once it is done, `why` where it is dead."""

    call_id: str
    tenant: str
    tool: str
    agent: str
    user: str
    scope: str
    stage: Stage
    attempts: int
    queued_ns: int
    expires_ns: int
    ended_ns: int = 0
    output: bytes = b""
    why: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a taken call ended. With `why` it is dead: nobody tries it again by itself. `counts`:
    whether it was tried by whoever took it last.
    """

    call_id: str
    fence: int
    output: bytes
    why: str = ""
    counts: bool = True


class Depth(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is to do.

    `lapsed`: how many of the taken ones are with a worker that has not been heard of for its lease.
    `oldest_ns`: since when the first one that is not over is queued. `unheld_ns`: the same of those
    that no worker holds, which those that lapsed are of.
    """

    waiting: int
    sent: int
    taken: int
    dead: int
    lapsed: int = 0
    oldest_ns: int = 0
    unheld_ns: int = 0

    @property
    def unheld(self) -> int:
        """How many no worker holds."""
        return self.waiting + self.sent + self.lapsed


class Dead(Protocol):
    """Calls that no worker could run."""

    async def page(self, tenant: str, *, before: str = "", most: int = 50) -> Sequence[Kept]:
        """The newest first; of all tenants where none is named."""
        ...

    async def again(self, tenant: str, call_id: str, *, who: str, why: str) -> bool:
        """It is due once more, as if for the first time; whether it was dead, and is a call."""
        ...

    async def discard(self, tenant: str, call_id: str, *, who: str, why: str) -> bool:
        """It is dead no more, and stays undone; whether it was. Who asks for it is told what they
        were told before. Of no tenant is a message that nobody could read.
        """
        ...

    async def discard_unreadable(self, *, who: str, why: str) -> int:
        """The same of all messages that nobody could read; how many that were."""
        ...


class Queue(Protocol):
    """Queued calls. Each is taken by one worker at a time, under a fence; times are the store's."""

    async def put(self, item: Item) -> None:
        """Keep it until it has ended. It returns when nothing can lose it."""
        ...

    async def take(
        self, most: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Own some that wait: of each tenant in turn, and of one order only the first.

        `but`: of these tenants none.
        """
        ...

    async def claim(self, call_ids: Sequence[str], lease: float) -> Sequence[Taken]:
        """Own those of them that nobody has: what a broker brought."""
        ...

    async def take_sent(
        self, most: int, lease: float, *, but: Collection[str] = NOBODY
    ) -> Sequence[Taken]:
        """Own some that a broker has, as `take` does; without `but` none where they are all of one
        tenant.
        """
        ...

    async def renew(self, taken: Collection[Taken], lease: float) -> None:
        """They are still being worked at here."""
        ...

    async def end(self, ended: Ended) -> bool:
        """It is over; whether it was still this worker's."""
        ...

    async def back(self, taken: Taken, seconds: float, *, counts: bool = True) -> None:
        """It could not be begun; it is tried again after so long. `counts`: as one attempt."""
        ...

    async def sweep(self) -> int:
        """Put back what was taken or sent and has not been heard of; how many that were."""
        ...

    async def find(self, tenant: str, call_id: str) -> Kept | None:
        """One call, as long as it is kept."""
        ...

    async def over(self, call_ids: Collection[str]) -> Sequence[Kept]:
        """Those of them that have ended."""
        ...

    async def waiting(self) -> Mapping[str, int]:
        """How many of each tenant are not over."""
        ...

    async def depth(self) -> Depth:
        """How many there are, each counted up to a bound."""
        ...


class Queues(NamedTuple):
    """Both sides of it, for operators."""

    calls: Queue
    dead: Dead
    # Why the broker does not carry them, or nothing; `None` where the store carries them itself.
    broker: Callable[[], str] | None = None
    # How many calls this process had taken and did not bring to their end, once it is closed.
    left: Callable[[], int] = lambda: 0
