"""PostgreSQL through asyncpg. The same work as on SQLite, on a pool of connections."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import asyncpg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.ext.asyncio import create_async_engine

from toolgate.errors import SettingsInvalid
from toolgate.store import records, tables
from toolgate.store.database import Ran
from toolgate.store.line import Line, settled
from toolgate.store.lines import Lines
from toolgate.store.metadata import on_postgres
from toolgate.store.opening import Opening
from toolgate.store.outage import closed, outage
from toolgate.store.text import storable
from toolgate.store.whose import NOBODY, within

T = TypeVar("T")
# A table is in the metadata once its module is loaded.
_LOADED = (records, tables)
on_postgres()
# A server that hangs must not hang us; no statement of ours takes this long.
_COMMAND_SECONDS = 30.0
_CONNECT_SECONDS = 10
# Who stands still in the middle of a transaction has rows that nobody else can take over; the
# server ends it after so long. Only a loop that does not come round takes longer.
_IDLE_SECONDS = 10
_GOODBYE_SECONDS = 1.0
_CONNECTIONS = 24
_WAIT_SECONDS = 30
# The server took the whole transaction back, because of others.
_TAKEN_BACK = frozenset({"40001", "40P01"})
_TIMES = 5
# Its types are not known to a checker.
_connect = cast("Callable[..., Awaitable[Any]]", asyncpg.connect)
_AWAY = (
    DBAPIError,
    PoolExhausted,
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # A connection that was lost in the middle of a statement.
    asyncpg.InternalClientError,
)


class Postgres:
    """A database on a server."""

    def __init__(self, url: str, connections: int = _CONNECTIONS) -> None:
        """`url` is `postgresql://user:password@host:port/name`, with libpq's options.

        Of the connections, which are opened when they are needed, most are for one statement each.
        """
        self._closed = False
        reads, writes = connections // 6, connections // 3
        self._opening = Opening(lambda: _connected(url))
        self._lines = Lines(self._opening, reads)
        self._writes = Lines(self._opening, writes)
        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self._opening,
            pool_size=connections - reads - writes,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
            pool_pre_ping=True,
        )
        # Each statement would else see a world of its own.
        self._snapshots = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )

    async def read(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        """Work in a transaction that sees one moment and cannot write."""
        if self._closed:
            raise closed()
        try:
            async with self._snapshots.connect() as connection:
                return await connection.run_sync(_worked, work, tenant)
        except _AWAY as error:
            raise outage(error) from None

    async def ask(
        self, question: str, values: tuple[str, ...] = (), *, tenant: str = ""
    ) -> Sequence[Sequence[Any]]:
        """On a line of its own, in one round trip."""
        if self._closed:
            raise closed()
        if tenant:
            question, values = within(question, len(values) + 1), (*values, storable(tenant))
        try:
            return await self._lines.ask(question, values)
        except _AWAY as error:
            raise outage(error) from None

    async def run(self, statement: str, values: Sequence[Any]) -> Ran:
        """On a line of its own, in one round trip."""
        if self._closed:
            raise closed()
        try:
            return await self._writes.run(statement, values)
        except _AWAY as error:
            raise outage(error) from None

    async def write(self, work: Callable[[Connection], T], *, tenant: str = "") -> T:
        """Work in a transaction of its own; done anew where the server took it back."""
        for time in range(1, _TIMES + 1):
            if self._closed:
                raise closed()
            try:
                async with self._engine.begin() as connection:
                    return await connection.run_sync(_worked, work, tenant)
            except IntegrityError:
                raise
            except _AWAY as error:
                taken_back = getattr(getattr(error, "orig", None), "sqlstate", "") in _TAKEN_BACK
                if not taken_back or time == _TIMES:
                    raise outage(error) from None
        raise AssertionError("the last time returns or raises")

    async def close(self) -> None:
        """Close the pool and the lines."""
        self._closed = True
        await self._lines.close()
        await self._writes.close()
        await self._engine.dispose()
        await self._opening.close()
        await settled(_GOODBYE_SECONDS)


def _worked(connection: Connection, work: Callable[[Connection], T], tenant: str) -> T:
    """The transaction begins with the first statement; its line knows by then whose it is."""
    line = cast("Line", connection.connection.driver_connection)
    line.tenant = storable(tenant)
    return work(connection)


async def _connected(url: str) -> Any:
    """The driver reads the url itself: it knows `sslmode` and all the others."""
    try:
        line = await _connect(
            url,
            timeout=_CONNECT_SECONDS,
            command_timeout=_COMMAND_SECONDS,
            connection_class=Line,
        )
    except ValueError:
        # Its text would show a part of the url, and with an unescaped `@` that is the password.
        problem = (
            "store.url: write postgresql://USER:PASSWORD@HOST:PORT/NAME, "
            "and signs such as @ : / in a password as %40 %3A %2F"
        )
        raise SettingsInvalid([problem]) from None
    try:
        bound = f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'"
        await line.execute(f"{NOBODY}; {bound}")
    except BaseException:
        line.terminate()
        raise
    return line
