"""How an agent wants to behave from now on: rules it keeps for itself, read with its prompt."""

from collections.abc import Sequence

import msgspec

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.shelf import Place, Shelf, Thing

KIND = "behaviour"
MOST = 50
LONGEST = 1_000


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    id: str
    text: str
    at_ns: int
    user: str = ""

    def told(self) -> dict[str, str]:
        """As it is read."""
        at = clock.moment_of(self.at_ns).isoformat(timespec="seconds")
        return {"id": self.id, "text": self.text, "at": at}


class Rules:
    """Those of one agent with one user, behind those that hold for all of its users.

    The latter come from callers that are no user: a key for the agent alone.
    """

    def __init__(self, shelf: Shelf, caller: Caller) -> None:
        self._shelf = shelf
        shared = Place(caller.tenant, KIND, f"agent:{caller.agent}")
        # Agents' names hold no slash.
        self._place = (
            Place(caller.tenant, KIND, f"{shared.owner}/{caller.user}") if caller.user else shared
        )
        self._places = tuple(dict.fromkeys((shared, self._place)))

    async def all(self) -> Sequence[Rule]:
        """In the order they came."""
        return [
            msgspec.convert(thing.body, Rule)
            for place in self._places
            for thing in await self._shelf.page(place, most=2 * MOST)
        ]

    async def known(self, text: str) -> Rule | None:
        """The one that says the same already."""
        return next((one for one in await self.all() if _same(one.text, text)), None)

    async def add(self, rule: Rule) -> bool:
        """Whether it is new: what is a rule already does not become one twice."""
        if await self.known(rule.text) is not None:
            return False
        if await self._shelf.count(self._place) >= MOST:
            raise ToolError(
                f"There are {MOST} rules, and no room for more. Look with behaviour_rules, and "
                "withdraw those that no longer hold."
            )
        body = msgspec.to_builtins(rule)
        return await self._shelf.change(self._place, Thing(key=rule.id, body=body))

    async def remove(self, name: str) -> bool:
        """Whether it was there."""
        return bool(await self._shelf.remove(self._place, [name]))


def _same(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()
