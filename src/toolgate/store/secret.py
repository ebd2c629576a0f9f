"""What the house signs by: made once, the same on every node, and never shown."""

import secrets

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate.store.database import Database
from toolgate.store.tables import house_secrets
from toolgate.store.upsert import upsert

_BYTES = 32


async def house_secret(database: Database, name: str) -> bytes:
    """The secret of this name. Of nodes that make it at the same time, one is heard."""
    wanted = sa.select(house_secrets.c.value).where(house_secrets.c.name == name)

    def read(connection: Connection) -> bytes | None:
        return connection.execute(wanted).scalar_one_or_none()

    def make(connection: Connection) -> bytes:
        row = {"name": name, "value": secrets.token_bytes(_BYTES)}
        upsert(connection, house_secrets, [row])
        return connection.execute(wanted).scalar_one()

    return await database.read(read) or await database.write(make)
