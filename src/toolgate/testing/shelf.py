"""A shelf in memory, with the rules of the one in a table."""

from collections.abc import Sequence

import msgspec

from toolgate import clock
from toolgate.shelf import PAGE, Place, Thing


class MemoryShelf:
    """The port over a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[Place, dict[str, Thing]] = {}

    async def get(self, place: Place, key: str) -> Thing | None:
        """The one of that key, or nothing."""
        return self._kept.get(place, {}).get(key)

    async def page(self, place: Place, *, after: str = "", most: int = PAGE) -> Sequence[Thing]:
        """Things in the order of their keys, those behind `after`."""
        kept = self._kept.get(place, {})
        keys = sorted(key for key in kept if key.encode() > after.encode())
        return [kept[key] for key in keys[:most]]

    async def put(self, place: Place, things: Sequence[Thing]) -> None:
        """Keep them all, whatever stood there."""
        kept = self._kept.setdefault(place, {})
        for thing in things:
            kept[thing.key] = _next(thing, kept.get(thing.key))

    async def change(self, place: Place, thing: Thing) -> bool:
        """Keep it if it is still of that revision, and a new one if there is none."""
        kept = self._kept.setdefault(place, {})
        before = kept.get(thing.key)
        if (0 if before is None else before.revision) != thing.revision:
            return False
        kept[thing.key] = _next(thing, before)
        return True

    async def remove(self, place: Place, keys: Sequence[str]) -> Sequence[str]:
        """Take them away; those that were there."""
        kept = self._kept.get(place, {})
        return [key for key in dict.fromkeys(keys) if kept.pop(key, None) is not None]

    async def count(self, place: Place) -> int:
        """How many there are."""
        return len(self._kept.get(place, {}))

    async def places(self, kind: str) -> Sequence[Place]:
        """Every place of a kind that holds something."""
        return [place for place, kept in self._kept.items() if kept and place.kind == kind]


def _next(thing: Thing, before: Thing | None) -> Thing:
    now = clock.unix_ns()
    return msgspec.structs.replace(
        thing,
        revision=1 if before is None else before.revision + 1,
        created_ns=now if before is None else before.created_ns,
        updated_ns=now,
    )
