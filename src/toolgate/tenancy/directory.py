"""The ports behind the tenancy: where the world is kept, and relations that are kept elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import Change
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.world import World

# Whoever opens the library and does not say who they are.
UNSIGNED = Actor()


class Directory(Protocol):
    """Where the world is kept. A change raises the revision, so that other nodes notice."""

    async def revision(self) -> int:
        """How many times the world was changed."""
        ...

    async def load(self, since: World | None = None) -> World:
        """The world at one revision, whole; what did not change after `since` is taken from it."""
        ...

    async def put(self, changes: tuple[Change, ...], actor: Actor = UNSIGNED) -> None:
        """All of them or none, and each on record under the actor's name.

        `InvalidRequest` where one does not fit what is on record.
        """
        ...

    async def audit(
        self, *, tenant: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[Record]:
        """What was changed, the newest first; `None` means every tenant."""
        ...

    async def relations(
        self, tenant: str, *, limit: int, after: Relation | None = None
    ) -> Sequence[Relation]:
        """A tenant's relations, in order."""
        ...

    async def definitions(self, server: str) -> Mapping[str, Mapping[str, Any]]:
        """What is agreed to of a server's tools, by its own names for them."""
        ...

    async def tool_files(self) -> Mapping[str, str]:
        """The tool files that are kept here, by name."""
        ...

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        """Of keys, by id, the moment of their last use. No change of the world, and no audit."""
        ...

    async def uses(self) -> Mapping[str, int]:
        """When each key was last used, of those that were."""
        ...


class RelationWriter(Protocol):
    """Relations that are kept elsewhere."""

    async def write(self, tenant: str, add: Sequence[Relation], remove: Sequence[Relation]) -> str:
        """Make the change; the token says how fresh to read to see it."""
        ...

    async def read(self, tenant: str, *, limit: int) -> Sequence[Relation]:
        """A tenant's relations, in order, as of now."""
        ...
