"""What was last said with an agent elsewhere, so that the next message belongs to it."""

import hashlib

import msgspec

from toolgate.caller import Caller
from toolgate.ledger.history import owner_of
from toolgate.shelf import Place, Shelf, Thing

KIND = "a2a"
MOST = 200


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """Where it stands; `task` is one that is not done."""

    context: str = ""
    task: str = ""


class Conversation:
    """One session's with one agent."""

    def __init__(self, shelf: Shelf, caller: Caller, url: str) -> None:
        self._shelf = shelf
        self._place = Place(caller.tenant, KIND, owner_of(caller))
        named = f"{len(caller.session)}/{caller.session}/{url}"
        self._key = hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:32]

    async def point(self) -> Point:
        """Where it stands."""
        found = await self._shelf.get(self._place, self._key)
        return Point() if found is None else msgspec.convert(found.body, Point)

    async def keep(self, point: Point) -> None:
        """For the next time; the oldest conversations are forgotten."""
        body = msgspec.to_builtins(point)
        await self._shelf.put(self._place, [Thing(key=self._key, body=body)])
        if await self._shelf.count(self._place) > MOST:
            there = await self._shelf.page(self._place, most=2 * MOST)
            oldest = sorted(there, key=lambda one: one.updated_ns)[: len(there) - MOST]
            await self._shelf.remove(self._place, [one.key for one in oldest])
