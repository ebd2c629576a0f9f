"""Where notices wait to be read: those of one agent and its user."""

from collections.abc import Sequence

import msgspec

from toolgate.caller import Caller
from toolgate.ledger.history import owner_of
from toolgate.shelf import Place, Shelf, Thing
from toolgate.tools.agent.notice import Notice

KIND = "inbox"
# The oldest go first: who never reads does not fill the store.
MOST = 500


class Inbox:
    """One of a house."""

    def __init__(self, shelf: Shelf, caller: Caller) -> None:
        self._shelf = shelf
        self._place = Place(caller.tenant, KIND, owner_of(caller))

    async def put(self, notice: Notice) -> bool:
        """Whether it is new; the same one again changes nothing."""
        body = msgspec.to_builtins(notice)
        if not await self._shelf.change(self._place, Thing(key=notice.id, body=body)):
            return False
        more = await self._shelf.count(self._place) - MOST
        if more > 0:
            oldest = await self._shelf.page(self._place, most=more)
            await self._shelf.remove(self._place, [thing.key for thing in oldest])
        return True

    async def read(self, *, after: str = "") -> Sequence[Notice]:
        """All that are there, oldest first; those behind `after`."""
        things = await self._shelf.page(self._place, after=after, most=2 * MOST)
        return [msgspec.convert(thing.body, Notice) for thing in things]
