"""Panes of a session, which agents append to: those of one agent and its user."""

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from toolgate import clock
from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.ledger.history import owner_of
from toolgate.shelf import Place, Shelf, Thing

KIND = "pane"
SESSIONS = "pane_session"
MOST_ITEMS = 500
MOST_BYTES = 1_000_000
MOST_OF_ITEM = 64_000
MOST_PANES = 50
# The oldest session is forgotten first.
MOST_SESSIONS = 500
_LONGEST = 200
_ATTEMPTS = 100


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What was appended, and when."""

    id: str
    at_ns: int
    content: Any
    size: int

    def told(self, position: int) -> dict[str, Any]:
        """As it is read."""
        at = clock.moment_of(self.at_ns).isoformat(timespec="seconds")
        return {"item": self.id, "position": position, "at": at, "content": self.content}


class Pane(msgspec.Struct, frozen=True):
    """Items in the order they came."""

    items: tuple[Item, ...] = ()

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(item.size for item in self.items)


class Panes:
    """Of one session. Nobody speaks in another's by knowing its name."""

    def __init__(self, shelf: Shelf, caller: Caller, session: str) -> None:
        self._shelf = shelf
        self._session = _checked("session_id", session)
        owner = owner_of(caller)
        self._place = Place(caller.tenant, KIND, f"{owner}/{session}")
        self._sessions = Place(caller.tenant, SESSIONS, owner)
        self._caller = caller

    async def names(self) -> Sequence[str]:
        """Of all panes."""
        return [thing.key for thing in await self._shelf.page(self._place)]

    async def read(self, name: str) -> Pane:
        """One of them; one that is not there is empty."""
        found = await self._shelf.get(self._place, _checked("pane", name))
        return Pane() if found is None else msgspec.convert(found.body, Pane)

    async def append(self, name: str, item: str, content: Any) -> Pane:
        """The pane with it at its end, however many append at the same time."""
        size = _size(content)
        made = Item(id=item, at_ns=clock.unix_ns(), content=content, size=size)
        return await self._changed(_checked("pane", name), made)

    async def remove(self, name: str, item: str) -> bool:
        """Whether the item was there."""
        for _ in range(_ATTEMPTS):
            found = await self._shelf.get(self._place, _checked("pane", name))
            pane = Pane() if found is None else msgspec.convert(found.body, Pane)
            rest = tuple(one for one in pane.items if one.id != item)
            if found is None or len(rest) == len(pane.items):
                return False
            body = msgspec.to_builtins(Pane(rest))
            thing = Thing(key=name, body=body, revision=found.revision)
            if await self._shelf.change(self._place, thing):
                return True
        raise _crowded()

    async def _changed(self, name: str, item: Item) -> Pane:
        for _ in range(_ATTEMPTS):
            found = await self._shelf.get(self._place, name)
            pane = Pane() if found is None else msgspec.convert(found.body, Pane)
            if any(one.id == item.id for one in pane.items):
                return pane
            if len(pane.items) >= MOST_ITEMS or pane.size + item.size > MOST_BYTES:
                raise ToolError(
                    f"The pane is full: it holds {MOST_ITEMS} items and {MOST_BYTES:,} bytes. "
                    "Append to another pane."
                )
            if found is None:
                await self._begin()
            after = Pane((*pane.items, item))
            revision = 0 if found is None else found.revision
            thing = Thing(key=name, body=msgspec.to_builtins(after), revision=revision)
            if await self._shelf.change(self._place, thing):
                return after
        raise _crowded()

    async def _begin(self) -> None:
        """Note the session, and let go of the oldest where there are too many."""
        if await self._shelf.count(self._place) >= MOST_PANES:
            raise ToolError(f"A session has at most {MOST_PANES} panes. Append to one of them.")
        await self._shelf.put(self._sessions, [Thing(key=self._session, body={})])
        if await self._shelf.count(self._sessions) > MOST_SESSIONS:
            there = await self._shelf.page(self._sessions, most=2 * MOST_SESSIONS)
            oldest = min(there, key=lambda thing: thing.updated_ns)
            panes = Panes(self._shelf, self._caller, oldest.key)
            await self._shelf.remove(panes._place, list(await panes.names()))
            await self._shelf.remove(self._sessions, [oldest.key])


async def sessions_of(shelf: Shelf, caller: Caller) -> Sequence[str]:
    """The sessions that have panes, the newest first."""
    place = Place(caller.tenant, SESSIONS, owner_of(caller))
    found = await shelf.page(place, most=2 * MOST_SESSIONS)
    return [one.key for one in sorted(found, key=lambda one: one.updated_ns, reverse=True)]


def _checked(what: str, name: str) -> str:
    if not name or len(name) > _LONGEST or not name.isprintable():
        raise ToolError(f"{what!r} is a text of 1 to {_LONGEST} visible characters.")
    return name


def _size(content: Any) -> int:
    try:
        size = len(orjson.dumps(content))
    except TypeError:
        raise ToolError("The content is no JSON. Send text, numbers, lists and objects.") from None
    if size > MOST_OF_ITEM:
        raise ToolError(
            f"The content has {size:,} bytes, and one item at most {MOST_OF_ITEM:,}. Append it in "
            "parts."
        )
    return size


def _crowded() -> ToolError:
    return ToolError("Too many append to this pane at once. Try again.", retryable=True)
