"""What tools keep between calls: the port to a shelf, where each has its place."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

# One page of what stands in a place.
PAGE = 1_000


class Place(msgspec.Struct, frozen=True):
    """Whose it is, and what kind of thing: nothing in one place is ever seen from another.

    `owner` is within the tenant: an agent, a persona, or nobody in particular.
    """

    tenant: str
    kind: str
    owner: str = ""


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """One that is kept. `revision` counts its changes; a new one has none."""

    key: str
    body: dict[str, Any]
    revision: int = 0
    created_ns: int = 0
    updated_ns: int = 0


class Shelf(Protocol):
    """Keeps things by key, in order of their keys."""

    async def get(self, place: Place, key: str) -> Thing | None:
        """The one of that key, or nothing."""
        ...

    async def page(self, place: Place, *, after: str = "", most: int = PAGE) -> Sequence[Thing]:
        """Things in the order of their keys, those behind `after`."""
        ...

    async def put(self, place: Place, things: Sequence[Thing]) -> None:
        """Keep them all, whatever stood there."""
        ...

    async def change(self, place: Place, thing: Thing) -> bool:
        """Keep it if it is still of that revision, and a new one if there is none; else `False`."""
        ...

    async def remove(self, place: Place, keys: Sequence[str]) -> Sequence[str]:
        """Take them away; those that were there."""
        ...

    async def count(self, place: Place) -> int:
        """How many there are."""
        ...

    async def places(self, kind: str) -> Sequence[Place]:
        """Every place of a kind that holds something, for what goes on without being asked."""
        ...
