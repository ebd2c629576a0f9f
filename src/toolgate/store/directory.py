"""The world in tables: tenants, flags, capsules, keys, rules, and who changed them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from toolgate.errors import InvalidRequest
from toolgate.store import audit, key_rows, revision, rules, servers, world
from toolgate.store.changes import apply
from toolgate.store.database import HOUSE, Database
from toolgate.store.revision import bump
from toolgate.tenancy.audit import Actor, Record
from toolgate.tenancy.changes import Change
from toolgate.tenancy.directory import UNSIGNED
from toolgate.tenancy.parts import touched
from toolgate.tenancy.relation import Relation
from toolgate.tenancy.world import World


class TableDirectory:
    """The directory port over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        """How many times the world was changed."""
        return await revision.now(self._database)

    async def load(self, since: World | None = None) -> World:
        """The world in one transaction; of what `since` holds, only what changed is read."""
        return await self._database.read(
            lambda connection: world.load(connection, since), tenant=HOUSE
        )

    async def put(self, changes: tuple[Change, ...], actor: Actor = UNSIGNED) -> None:
        """All of the changes and what is noted of them, or none."""

        def work(connection: Connection) -> None:
            bump(connection, touched(changes))
            for change in changes:
                apply(change, connection)
            audit.write(connection, changes, actor)

        try:
            await self._database.write(work, tenant=HOUSE)
        except IntegrityError:
            raise InvalidRequest(
                "The change names a tenant or an agent that is not on record, or a key that is; "
                "nothing was changed."
            ) from None

    async def audit(
        self, *, tenant: str | None = None, limit: int = 100, before: int | None = None
    ) -> Sequence[Record]:
        """What was changed, the newest first."""
        return await self._database.read(
            lambda connection: audit.read(connection, tenant=tenant, limit=limit, before=before),
            tenant=tenant or HOUSE,
        )

    async def relations(
        self, tenant: str, *, limit: int, after: Relation | None = None
    ) -> Sequence[Relation]:
        """A tenant's relations, in order."""
        return await self._database.read(
            lambda connection: rules.read_relations(connection, tenant, limit, after), tenant=tenant
        )

    async def definitions(self, server: str) -> Mapping[str, Mapping[str, Any]]:
        """What is agreed to of a server's tools."""
        return await self._database.read(
            lambda connection: servers.read_definitions(connection, server), tenant=HOUSE
        )

    async def tool_files(self) -> Mapping[str, str]:
        """The tool files that are kept here, by name."""
        return await self._database.read(rules.read_tool_files, tenant=HOUSE)

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        """Of keys, by id, the moment of their last use."""
        await self._database.write(
            lambda connection: key_rows.note_uses(connection, uses), tenant=HOUSE
        )

    async def uses(self) -> Mapping[str, int]:
        """When each key was last used, of those that were."""
        return await self._database.read(key_rows.uses, tenant=HOUSE)
