"""The shelf in a table: a row a thing, its body as JSON text."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import orjson
import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock
from toolgate.shelf import PAGE, Place, Thing
from toolgate.store.database import HOUSE, Database
from toolgate.store.tables import shelf as table
from toolgate.store.text import storable
from toolgate.store.upsert import inserted, upsert

_COLUMNS = (
    table.c.key,
    table.c.body,
    table.c.revision,
    table.c.created_ns,
    table.c.updated_ns,
)


class TableShelf:
    """The port over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, place: Place, key: str) -> Thing | None:
        """The one of that key, or nothing."""
        question = sa.select(*_COLUMNS).where(_in(place), table.c.key == storable(key))

        def work(connection: Connection) -> Thing | None:
            row = connection.execute(question).one_or_none()
            return None if row is None else _thing(row)

        return await self._database.read(work, tenant=place.tenant)

    async def page(self, place: Place, *, after: str = "", most: int = PAGE) -> Sequence[Thing]:
        """Things in the order of their keys, those behind `after`."""
        question = (
            sa.select(*_COLUMNS)
            .where(_in(place), table.c.key > storable(after))
            .order_by(table.c.key)
            .limit(most)
        )
        return await self._database.read(
            lambda connection: [_thing(row) for row in connection.execute(question)],
            tenant=place.tenant,
        )

    async def put(self, place: Place, things: Sequence[Thing]) -> None:
        """Keep them all, whatever stood there."""
        # The last of a key counts; one statement cannot change a row twice.
        last = {storable(thing.key): thing for thing in things}

        def work(connection: Connection) -> None:
            found = connection.execute(
                sa.select(table.c.key, table.c.revision, table.c.created_ns).where(
                    _in(place), table.c.key.in_(list(last))
                )
            )
            before = {key: (revision, created_ns) for key, revision, created_ns in found}
            now = clock.unix_ns()
            rows = [
                _row(place, thing, now, *before.get(key, (0, now))) for key, thing in last.items()
            ]
            upsert(connection, table, rows, change=("body", "revision", "updated_ns"))

        await self._database.write(work, tenant=place.tenant)

    async def change(self, place: Place, thing: Thing) -> bool:
        """Keep it if it is still of that revision, and a new one if there is none; else `False`."""
        now = clock.unix_ns()
        row = _row(place, thing, now, thing.revision, now)

        def work(connection: Connection) -> bool:
            if thing.revision:
                changed = connection.execute(
                    sa.update(table)
                    .where(
                        _in(place),
                        table.c.key == row["key"],
                        table.c.revision == thing.revision,
                    )
                    .values(
                        body=row["body"], revision=row["revision"], updated_ns=row["updated_ns"]
                    )
                )
                return changed.rowcount == 1
            return inserted(connection, table, row)

        return await self._database.write(work, tenant=place.tenant)

    async def remove(self, place: Place, keys: Sequence[str]) -> Sequence[str]:
        """Take them away; those that were there."""
        wanted = list(dict.fromkeys(map(storable, keys)))

        def work(connection: Connection) -> Sequence[str]:
            where = (_in(place), table.c.key.in_(wanted))
            found = set(connection.execute(sa.select(table.c.key).where(*where)).scalars())
            connection.execute(sa.delete(table).where(*where))
            return [key for key in wanted if key in found]

        return await self._database.write(work, tenant=place.tenant)

    async def count(self, place: Place) -> int:
        """How many there are."""
        question = sa.select(sa.func.count()).select_from(table).where(_in(place))
        return await self._database.read(
            lambda connection: connection.execute(question).scalar_one(), tenant=place.tenant
        )

    async def places(self, kind: str) -> Sequence[Place]:
        """Every place of a kind that holds something."""
        question = (
            sa.select(table.c.tenant_id, table.c.owner)
            .where(table.c.kind == storable(kind))
            .distinct()
            .order_by(table.c.tenant_id, table.c.owner)
        )
        return await self._database.read(
            lambda connection: [
                Place(tenant, kind, owner) for tenant, owner in connection.execute(question)
            ],
            tenant=HOUSE,
        )


def _in(place: Place) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.tenant_id == storable(place.tenant),
        table.c.kind == storable(place.kind),
        table.c.owner == storable(place.owner),
    )


def _row(place: Place, thing: Thing, now: int, revision: int, created_ns: int) -> dict[str, Any]:
    return {
        "tenant_id": storable(place.tenant),
        "kind": storable(place.kind),
        "owner": storable(place.owner),
        "key": storable(thing.key),
        "body": storable(orjson.dumps(thing.body).decode()),
        "revision": revision + 1,
        "created_ns": created_ns,
        "updated_ns": now,
    }


def _thing(row: Iterable[Any]) -> Thing:
    key, body, revision, created_ns, updated_ns = row
    return Thing(
        key=key,
        body=cast("dict[str, Any]", orjson.loads(body)),
        revision=revision,
        created_ns=created_ns,
        updated_ns=updated_ns,
    )
