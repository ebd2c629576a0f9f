"""PostgreSQL through asyncpg. The same work as on SQLite, on a pool of connections."""

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

from toolgate.errors import StoreUnavailable

T = TypeVar("T")


class Postgres:
    """A database on a server."""

    def __init__(self, url: str) -> None:
        """`url` is `postgresql://user:password@host:port/name`."""
        self._engine = create_async_engine(
            sa.make_url(url).set(drivername="postgresql+asyncpg"), pool_size=10, pool_pre_ping=True
        )

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Work in a transaction that is not kept."""
        try:
            async with self._engine.connect() as connection:
                return await connection.run_sync(work)
        except (DBAPIError, OSError) as error:
            raise _unavailable(error) from None

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Work in a transaction of its own."""
        try:
            async with self._engine.begin() as connection:
                return await connection.run_sync(work)
        except IntegrityError:
            raise
        except (DBAPIError, OSError) as error:
            raise _unavailable(error) from None

    async def close(self) -> None:
        """Close the pool."""
        await self._engine.dispose()


def _unavailable(error: BaseException) -> StoreUnavailable:
    # The driver's text can hold the statement and its values: only its kind is told.
    cause = getattr(error, "orig", None) or error
    return StoreUnavailable(
        f"The store cannot be used right now ({type(cause).__name__}). "
        "Try again when it is back; `toolgate doctor` says more."
    )
