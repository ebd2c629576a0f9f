"""What time it is for the store: all nodes share the database's clock."""

import sqlalchemy as sa
from sqlalchemy import Connection

from toolgate import clock

_POSTGRES = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint")


def now_ns(connection: Connection) -> int:
    """Nanoseconds since 1970, by the server's clock; a file has that of this machine."""
    if connection.dialect.name != "postgresql":
        return clock.unix_ns()
    return connection.execute(_POSTGRES).scalar_one()
