"""What an operator says about who stands how to what, wherever relations are kept."""

from collections.abc import Iterable, Sequence

import msgspec

from toolgate.errors import InvalidRequest
from toolgate.identity import plain
from toolgate.tenancy import relation as relations_
from toolgate.tenancy.changes import MarkRelations, SetRelations
from toolgate.tenancy.directory import RelationWriter
from toolgate.tenancy.hand import Hand
from toolgate.tenancy.relation import Relation

MOST_RELATIONS = 1_000
_MOST_READ = 100_000


class Relating(Hand):
    """Relations of a tenant."""

    async def relate(
        self,
        tenant: str,
        *,
        add: Iterable[Relation | str] = (),
        remove: Iterable[Relation | str] = (),
    ) -> None:
        """Add and remove relations: `tool:pay#executor@user:ann`. Neither has to be new."""
        plain("tenant", tenant)
        added, removed = _relations(add), _relations(remove)
        if not added and not removed:
            raise InvalidRequest("Say which relations to add or to remove.")
        if len(added) + len(removed) > MOST_RELATIONS:
            raise InvalidRequest(
                f"At most {MOST_RELATIONS:,} relations are changed at once; nothing was changed."
            )
        if both := set(added) & set(removed):
            raise InvalidRequest(
                f"{str(min(both))[:200]!r} is to be added and removed; nothing was changed."
            )
        for one in added:
            if one.kind == "tool":
                self._tool(one.name)
        if self._elsewhere is None:
            await self._put(SetRelations(tenant, added, removed))
        else:
            await self._write(self._elsewhere, MarkRelations(tenant, "", added, removed))

    async def relations(
        self, tenant: str, *, limit: int = MOST_RELATIONS, after: Relation | None = None
    ) -> Sequence[Relation]:
        """A tenant's relations, in order."""
        plain("tenant", tenant)
        if not 1 <= limit <= _MOST_READ:
            raise InvalidRequest(f"The limit is a number from 1 to {_MOST_READ:,}.")
        if self._elsewhere is not None:
            if after is None:
                return await self._elsewhere.read(tenant, limit=limit)
            # It cannot be asked to go on from one: as many as can be read are looked through.
            found = sorted(await self._elsewhere.read(tenant, limit=_MOST_READ))
            return [one for one in found if one > after][:limit]
        return await self._directory.relations(tenant, limit=limit, after=after)

    async def _write(self, writer: RelationWriter, intent: MarkRelations) -> None:
        """On record first; and every node forgets what it knew, before and after."""
        async with self._stepping:
            await self._put(intent)
            # Where it fails, it may have been done all the same: what was read since is in doubt.
            mark = msgspec.structs.replace(intent, failed=True)
            try:
                token = await writer.write(intent.tenant, intent.add, intent.remove)
                mark = msgspec.structs.replace(intent, token=token)
            finally:
                await self._put(mark)


def _relations(given: Iterable[Relation | str]) -> tuple[Relation, ...]:
    if isinstance(given, str):
        raise InvalidRequest(f"Give each relation by itself: ({given[:120]!r},).")
    return tuple(
        dict.fromkeys(
            relations_.parse(one) if isinstance(one, str) else relations_.checked(one)
            for one in given
        )
    )
