"""The audit log of a store, to be proven and handed out."""

from collections.abc import Callable, Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store import proof
from toolgate.store.database import HOUSE, Database
from toolgate.store.seals import Sealer
from toolgate.tenancy.audit import Anchor, Proof

_UNHURRIED = sa.text("SET LOCAL idle_in_transaction_session_timeout = 0")


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

    async def export(self, tenant: str | None, take: Callable[[dict[str, Any]], None]) -> None:
        """Hand out records and seals, each seal behind its records."""
        await Sealer(self._database).seal()

        def work(connection: Connection) -> None:
            if connection.dialect.name == "postgresql":
                # Who reads it may stop in the middle, at a pager; nothing is locked meanwhile.
                connection.execute(_UNHURRIED)
            for row in proof.export(connection, tenant):
                take(row)

        await self._database.read(work, tenant=tenant or HOUSE)
