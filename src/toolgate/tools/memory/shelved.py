"""Memories on the shelf: those of one persona, or of one agent, in a tenant."""

from collections.abc import Sequence

from toolgate.caller import Caller
from toolgate.errors import ToolError
from toolgate.shelf import Place, Thing
from toolgate.tools.meaning.embedding import embedded, kept
from toolgate.tools.meaning.owner import owner_of
from toolgate.tools.meaning.search import everything, nearest
from toolgate.tools.meaning.words import spaced
from toolgate.tools.means import Means
from toolgate.tools.memory.condition import Conditions
from toolgate.tools.memory.memories import Recalled
from toolgate.tools.memory.remembered import Remembered

KIND = "memory"
MOST = 10_000


class Shelved:
    """The port over the shelf."""

    def __init__(self, means: Means, caller: Caller) -> None:
        self._means = means
        self._caller = caller
        self._place = Place(caller.tenant, KIND, owner_of(caller))
        self._strange = 0

    async def save(self, memory: Remembered) -> None:
        """Keep it."""
        if await self._means.shelf.count(self._place) >= MOST:
            raise ToolError(
                f"There are {MOST:,} memories, and no room for more. Forget what is no longer "
                "needed first."
            )
        made = await embedded(self._means, self._caller, [memory.text])
        body = {
            "text": memory.text,
            "saved_ns": memory.saved_ns,
            "agent": memory.agent,
            "user": memory.user,
            "session": memory.session,
            "words": spaced(memory.text),
            "vector": kept(made.vectors[0]),
            "model": made.model,
        }
        await self._means.shelf.put(self._place, [Thing(key=memory.id, body=body)])

    async def recall(self, query: str, fits: Conditions) -> Sequence[Recalled]:
        """Those that fit, best first."""
        things = [
            thing
            for thing in await everything(self._means.shelf, self._place)
            if fits(_memory(thing))
        ]
        asked = await embedded(self._means, self._caller, [query])
        self._strange = sum(1 for thing in things if thing.body["model"] != asked.model)
        hits = await nearest(query, asked, things)
        return [Recalled(_memory(hit.thing), hit.score) for hit in hits]

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        """Take them away; those that were there."""
        return await self._means.shelf.remove(self._place, ids)

    async def note(self) -> str:
        """What another model embedded was found by its words alone."""
        if not self._strange:
            return ""
        return (
            f"{self._strange} memories were saved with another embedding model and were compared "
            "by their words only. Save them again to find them by meaning too."
        )


def _memory(thing: Thing) -> Remembered:
    body = thing.body
    return Remembered(
        id=thing.key,
        text=body["text"],
        saved_ns=body["saved_ns"],
        agent=body["agent"],
        user=body["user"],
        session=body["session"],
    )
