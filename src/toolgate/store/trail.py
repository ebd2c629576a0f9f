"""The audit log of a store, to be proven and handed out."""

import asyncio
from collections.abc import Collection

from toolgate.store import exporting, proof
from toolgate.store.database import HOUSE, Database
from toolgate.store.seals import Sealer
from toolgate.tenancy.audit import Anchor, Exported, Mark, Proof


class TableTrail:
    """Everything here seals first what is new: what is looked at is then all of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def anchors(self, tenant: str | None = None) -> list[Anchor]:
        """The newest link of each chain."""
        await Sealer(self._database).seal()
        return await self._database.read(
            lambda one: proof.anchors(one, tenant), tenant=tenant or HOUSE
        )

    async def verify(self, *, tenant: str | None = None, kept: Collection[str] = ()) -> Proof:
        """Look at everything again. `kept`: anchors that have to be in a chain."""
        await Sealer(self._database).seal()
        return await self._database.read(
            lambda one: proof.verify(one, tenant=tenant, kept=kept), tenant=tenant or HOUSE
        )

    async def export(self, tenant: str | None, after: Mark | None, *, most: int) -> Exported:
        """Hand out about so many records and seals, each seal behind its records."""
        await Sealer(self._database).seal()
        rows, following = await self._database.read(
            lambda one: exporting.part(one, tenant, after, most), tenant=tenant or HOUSE
        )
        lines = await asyncio.to_thread(lambda: tuple(exporting.lines(rows)))
        return Exported(lines, following)
