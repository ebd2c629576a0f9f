"""A directory that tells the other nodes of each change."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolgate.gate.shared import Shared
from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import Change
from toolgate.tenancy.directory import UNSIGNED, Directory
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.world import World


class Announced:
    """The directory port over another one."""

    def __init__(self, directory: Directory, shared: Shared) -> None:
        self._directory = directory
        self._shared = shared

    async def revision(self) -> int:
        """How many times the world was changed."""
        return await self._directory.revision()

    async def load(self, since: World | None = None) -> World:
        """The world."""
        return await self._directory.load(since)

    async def put(self, changes: tuple[Change, ...], actor: Actor = UNSIGNED) -> None:
        """Stored first, told afterwards: whoever hears of it looks for themselves."""
        await self._directory.put(changes, actor)
        await self._shared.announce(0)

    async def audit(
        self, *, tenant: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[Record]:
        """What was changed."""
        return await self._directory.audit(tenant=tenant, limit=limit, before=before)

    async def relations(
        self, tenant: str, *, limit: int, after: Relation | None = None
    ) -> Sequence[Relation]:
        """A tenant's relations."""
        return await self._directory.relations(tenant, limit=limit, after=after)

    async def definitions(self, server: str) -> Mapping[str, Mapping[str, Any]]:
        """What is agreed to of a server's tools."""
        return await self._directory.definitions(server)

    async def tool_files(self) -> Mapping[str, str]:
        """The tool files that are kept."""
        return await self._directory.tool_files()

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        """Nobody is told: it changes nothing."""
        await self._directory.note_uses(uses)

    async def uses(self) -> Mapping[str, int]:
        """When keys were last used."""
        return await self._directory.uses()
