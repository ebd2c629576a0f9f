"""The port to queued calls for whoever carries them: what is sent, what arrived, what is told."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from toolgate.queue.queue import Item, Stage

# Of so many messages that cannot be read the contents are kept: anybody may be able to write them.
MOST_WHOLE = 1_000


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A call on its way to the broker. Those of one `key` go one way."""

    call_id: str
    tenant: str
    key: str
    message: bytes


class Untold(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has ended, and of which nobody was told. `message` is there where it is dead."""

    call_id: str
    tenant: str
    tool: str
    stage: Stage
    attempts: int
    ended_ns: int
    output: bytes
    message: bytes
    why: str


class Poison(msgspec.Struct, frozen=True, kw_only=True):
    """What came from a broker and cannot be a call: where it lay, what it held, what is wrong."""

    place: str
    content: bytes
    why: str


class Shipping(Protocol):
    """Queued calls as far as they leave the store. Times are the store's."""

    async def waits(self) -> bool:
        """Whether anything waits to be sent."""
        ...

    async def send(self, most: int, *, window: int, again: float) -> Sequence[Parcel]:
        """Have them sent by whoever asks: of each tenant in turn, of one order only the first.

        They are sent `again` where nobody has heard of them so many seconds later, or as long as
        they have been in the queue by now.
        """
        ...

    async def unsent(self, call_ids: Collection[str]) -> None:
        """The broker did not take them."""
        ...

    async def known(self, call_ids: Collection[str]) -> Mapping[str, str]:
        """Those of them that are in the queue, in whichever stage, and whose they are."""
        ...

    async def adopt(self, items: Sequence[Item]) -> None:
        """Calls that another system sent; one that is there already stays as it is."""
        ...

    async def bury(self, poison: Sequence[Poison]) -> None:
        """Dead at once, each once however often it comes. Where `MOST_WHOLE` are dead already, only
        where it lies and why.
        """
        ...

    async def untold(self, most: int, *, after: float) -> Sequence[Untold]:
        """Ended so many seconds ago, and nobody told."""
        ...

    async def told(self, call_ids: Collection[str]) -> None:
        """Those who read results have them."""
        ...
