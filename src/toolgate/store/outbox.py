"""The outbox as a table. A row is written in the transaction of what it tells of."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.call import Event
from toolgate.ledger.events import MOST_WAITING, Waiting
from toolgate.store.database import HOUSE, Database
from toolgate.store.hold import Hold
from toolgate.store.moment import now_ns
from toolgate.store.records import outbox
from toolgate.store.text import json_text, storable

_decode = msgspec.json.Decoder(Event).decode


def enqueue(connection: Connection, event: Event, *, key: str = "") -> None:
    """Put an event where it is sent from. Those of one key, the call's unless said, keep order."""
    connection.execute(
        outbox.insert().values(
            at_ns=event.at_ns,
            tenant_id=storable(event.tenant),
            kind=event.kind,
            key=storable(key or event.call_id),
            payload=json_text(event),
        )
    )


class TableOutbox:
    """The outbox port over a database."""

    def __init__(self, database: Database, hold: Hold | None = None) -> None:
        self._database = database
        self._hold = hold or Hold()

    async def take(self, limit: int, lease: float) -> Sequence[Waiting]:
        """On PostgreSQL, what another node is taking is left to it."""
        if self._hold.why:
            return []
        earlier = outbox.alias()
        is_first = ~sa.exists().where(earlier.c.key == outbox.c.key, earlier.c.id < outbox.c.id)

        def work(connection: Connection) -> list[Waiting]:
            now = now_ns(connection)
            rows = connection.execute(
                sa.select(outbox.c.id, outbox.c.payload, outbox.c.attempts)
                .where(outbox.c.next_ns <= now, is_first)
                .order_by(outbox.c.id)
                .limit(limit)
                .with_for_update(skip_locked=True, of=outbox)
            ).all()
            if rows:
                connection.execute(
                    outbox.update()
                    .where(outbox.c.id.in_([row.id for row in rows]))
                    .values(attempts=outbox.c.attempts + 1, next_ns=now + round(lease * 1e9))
                )
            return [Waiting(row.id, _decode(row.payload), row.attempts + 1) for row in rows]

        return await self._database.write(work, tenant=HOUSE)

    async def sent(self, numbers: Sequence[int]) -> None:
        """Its row is not needed any more."""
        await self._database.write(
            lambda connection: connection.execute(
                outbox.delete().where(outbox.c.id.in_(list(numbers)))
            ),
            tenant=HOUSE,
        )

    async def later(self, number: int, seconds: float) -> None:
        """By the database's clock."""

        def work(connection: Connection) -> None:
            connection.execute(
                outbox.update()
                .where(outbox.c.id == number)
                .values(next_ns=now_ns(connection) + round(seconds * 1e9))
            )

        await self._database.write(work, tenant=HOUSE)

    async def waiting(self) -> int:
        """Not beyond the bound: a table that is too long is not counted to its end."""
        some = sa.select(outbox.c.id).limit(MOST_WAITING).subquery()
        return await self._database.read(
            lambda connection: connection.execute(
                sa.select(sa.func.count()).select_from(some)
            ).scalar_one(),
            tenant=HOUSE,
        )
