"""Who changed, did or was refused what, when and why. Written with it, or neither is."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec

LIBRARY = "library"
# What is noted beside changes: how a side effect ended, a page of other calls, a refusal.
ENDED = "call.ended"
PAGE = "calls.page"
REFUSED = "call.refused"
# What every store can hold.
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Actor(msgspec.Struct, frozen=True):
    """Who makes a change, and why."""

    who: str = LIBRARY
    why: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One thing on record. `tenant` is empty where it concerns everyone."""

    id: int
    at_ns: int
    who: str
    why: str
    tenant: str
    change: str
    details: Mapping[str, Any]


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """One link of a tenant's chain: its hash is over the one before and the records in it."""

    tenant: str
    number: int
    at_ns: int
    records: int
    first_id: int
    last_id: int
    hash: str


class Anchor(msgspec.Struct, frozen=True):
    """The newest link of a tenant's chain, to be kept where nobody who writes the log can write."""

    tenant: str
    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What came of looking at everything: it holds where there are no problems."""

    records: int = 0
    seals: int = 0
    pages: int = 0
    # Records that the next seal will take in, and anything before a seal can tell.
    unsealed: int = 0
    problems: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing was changed, as far as the chain and the anchors can tell."""
        return not self.problems


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Where an export goes on: behind this seal of a tenant; or, once all of its seals are out,
    behind this record of those that no seal holds.
    """

    tenant: str
    seal: _Number = 0
    beyond: _Number | None = None


class Exported(NamedTuple):
    """A part of an export as lines of JSON, in ASCII; and where the next part begins."""

    lines: tuple[str, ...]
    following: Mark | None


class Trail(Protocol):
    """The audit log of a store, to be proven and handed out."""

    async def anchors(self, tenant: str | None = None) -> list[Anchor]:
        """The newest link of each chain."""
        ...

    async def verify(self, *, tenant: str | None = None, kept: Collection[str] = ()) -> Proof:
        """Look at everything again. `kept`: anchors that have to be in a chain."""
        ...

    async def export(self, tenant: str | None, after: Mark | None, *, most: int) -> Exported:
        """Hand out about so many records and seals, each seal behind its records."""
        ...
