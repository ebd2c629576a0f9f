"""A named index: texts with their vectors on the shelf, one owner's."""

import re
from collections.abc import Sequence

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.shelf import Place, Thing
from toolgate.tools.llm.item import Item
from toolgate.tools.meaning.embedding import embedded, kept, model_of
from toolgate.tools.meaning.owner import owner_of
from toolgate.tools.meaning.search import everything
from toolgate.tools.means import Means

KIND = "index"
MOST = 20_000
_BATCH = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")


class Index:
    """One of them. Its items are found from nowhere else: not by another persona or tenant."""

    def __init__(self, means: Means, caller: Caller, name: str) -> None:
        if not _NAME.match(name):
            raise ToolError(
                "An index has a name of small letters, digits, '.', '_' and '-', such as "
                "'support-questions'."
            )
        self._means = means
        self._caller = caller
        self._prefix = f"{name}/"
        self._place = Place(caller.tenant, KIND, owner_of(caller))

    async def put(self, items: Sequence[Item]) -> None:
        """Keep them; one of the same id is replaced."""
        if not items:
            return
        count = await self._means.shelf.count(self._place)
        if count + len(items) > MOST and count + await self._added(items) > MOST:
            raise ToolError(
                f"Your indexes would hold more than {MOST:,} items in all. Take some out with "
                "`remove` first."
            )
        await self._write(items)

    async def remove(self, ids: Sequence[str]) -> list[str]:
        """Take them out; those that were there."""
        gone = await self._means.shelf.remove(self._place, [self._prefix + one for one in ids])
        return [key.removeprefix(self._prefix) for key in gone]

    async def all(self) -> list[tuple[Item, str]]:
        """Every item with its vector. Those that another model made are made again."""
        found = await self._things()
        model = model_of(self._means)
        older = [thing for thing in found if thing.body["model"] != model]
        if older:
            await self._write([self._item(thing) for thing in older])
            found = await self._things()
        return [(self._item(thing), thing.body["vector"]) for thing in found]

    async def _added(self, items: Sequence[Item]) -> int:
        """How many of them are not there yet; the others take no more room."""
        keys = {self._prefix + item.id for item in items}
        there = [await self._means.shelf.get(self._place, key) for key in keys]
        return there.count(None)

    async def _write(self, items: Sequence[Item]) -> None:
        for start in range(0, len(items), _BATCH):
            some = items[start : start + _BATCH]
            made = await embedded(self._means, self._caller, [item.text for item in some])
            things = [
                Thing(
                    key=self._prefix + item.id,
                    body={"text": item.text, "vector": kept(vector), "model": made.model},
                )
                for item, vector in zip(some, made.vectors, strict=True)
            ]
            await self._means.shelf.put(self._place, things)

    async def _things(self) -> list[Thing]:
        return await everything(self._means.shelf, self._place, prefix=self._prefix)

    def _item(self, thing: Thing) -> Item:
        return Item(thing.key.removeprefix(self._prefix), thing.body["text"])
