"""What a tenant's agents have scheduled, on the shelf."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.ledger.history import owner_of
from toolgate.shelf import Place, Shelf, Thing
from toolgate.tools.agent.appointment import Appointment

KIND = "schedule"
MOST = 500
MOST_OF_ONE = 50


class Noted(NamedTuple):
    """An appointment, and which version of it this is."""

    appointment: Appointment
    revision: int


class Diary:
    """Of one tenant."""

    def __init__(self, shelf: Shelf, tenant: str) -> None:
        self._shelf = shelf
        self._place = Place(tenant, KIND)

    async def all(self) -> Sequence[Noted]:
        """Every one that can be read."""
        found: list[Noted] = []
        for thing in await self._shelf.page(self._place, most=2 * MOST):
            try:
                found.append(Noted(msgspec.convert(thing.body, Appointment), thing.revision))
            except msgspec.ValidationError:
                continue
        return found

    async def of(self, caller: Caller) -> Sequence[Appointment]:
        """Those of one agent and its user."""
        return [one for one, _ in await self.all() if one.owner == owner_of(caller)]

    async def find(self, name: str) -> Noted | None:
        """One of them."""
        thing = await self._shelf.get(self._place, name)
        if thing is None:
            return None
        return Noted(msgspec.convert(thing.body, Appointment), thing.revision)

    async def add(self, appointment: Appointment) -> None:
        """A new one; the same again changes nothing."""
        there = [one for one, _ in await self.all()]
        own = sum(1 for one in there if one.owner == appointment.owner)
        if own >= MOST_OF_ONE or len(there) >= MOST:
            raise ToolError(
                f"There is an end to what can be scheduled ({MOST_OF_ONE} tasks an agent, {MOST} a "
                "tenant). Look with scheduler_list, and cancel what is no longer needed."
            )
        await self.change(Noted(appointment, 0))

    async def change(self, noted: Noted) -> bool:
        """Keep it, where nobody has changed it meanwhile."""
        body = msgspec.to_builtins(noted.appointment)
        thing = Thing(key=noted.appointment.id, body=body, revision=noted.revision)
        return await self._shelf.change(self._place, thing)

    async def remove(self, name: str) -> bool:
        """Whether it was there."""
        return bool(await self._shelf.remove(self._place, [name]))
